-- The same body is recognised when a file is imported a second time.
CREATE INDEX delivery_body ON delivery (body_sha256);
