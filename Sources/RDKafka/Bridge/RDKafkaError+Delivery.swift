import CRDKafka

extension RDKafkaError {
  /// What became of the record of a delivery that failed.
  init(delivery: Delivery, topic: String) {
    self.init(
      delivery: rd_kafka_resp_err_t(rawValue: delivery.error), isPossiblyPersisted: delivery.isPossiblyPersisted, topic: topic)
  }

  /// What the broker's or librdkafka's error number means.
  init(number: Int32, context: String) {
    self.init(response: rd_kafka_resp_err_t(rawValue: number), context: context)
  }
}
