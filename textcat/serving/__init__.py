"""A server of models over HTTP: `app` has the routes, `_front` what all requests go through, `run` the processes.

`store` keeps the models and takes over those that are replaced, `_work` tags what several requests ask for at once,
`_schemas` says what may be sent and what is answered. FastAPI describes the routes; what is read and answered goes
past its machinery, which takes longer than to tag a document.
"""
