// The seams of RDKafka are written first.
