// Tests of RDKafkaTests.
