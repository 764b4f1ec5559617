"""What schemathesis is told of, to send a stream of lines: it goes out as text does."""

import schemathesis

schemathesis.serializer.alias("application/x-ndjson", "text/plain")
