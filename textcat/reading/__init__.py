"""Read documents of many formats from files, folders, archives, URLs and pipes: for training and for tagging."""
