"""Serve models over HTTP (`tagging`, `models`, `files`, `annif`, `kserve`), or the pages of `teach` or `review`.

`store` loads the models, and loads a model again if its folder is replaced; `work` tags the documents of several
requests at once; `schemas` defines requests and responses; `http` has the middleware of all requests, and the
processes. FastAPI only describes the routes: requests and responses bypass its own parsing and serialisation, which
would take longer than tagging a document.
"""
