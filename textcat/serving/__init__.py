"""A server of models over HTTP: `app` has the routes, `_front` what all requests go through, `run` the processes.

`store` loads the models and reloads those that are replaced, `_work` tags the documents of several requests at once,
`_schemas` defines requests and responses. FastAPI only describes the routes: requests and responses bypass its own
parsing and serialisation, which would take longer than tagging a document.
"""
