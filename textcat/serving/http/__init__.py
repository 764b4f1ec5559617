"""What all requests go through, and the processes that listen: nothing here knows models or sessions."""
