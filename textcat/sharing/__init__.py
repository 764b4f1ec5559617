"""Copy model folders to and from repositories of the Hugging Face hub, and URLs of fsspec."""
