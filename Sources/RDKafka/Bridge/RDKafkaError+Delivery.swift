import CRDKafka

extension RDKafkaError {
  /// What became of the record of a delivery that is no acknowledgement.
  init(delivery: Delivery, topic: String) {
    guard delivery.error != 0 else {
      self.init(code: .possiblyPersisted, message: "\(topic): the broker has only acknowledged a later record")
      return
    }
    self.init(
      delivery: rd_kafka_resp_err_t(rawValue: delivery.error), isPossiblyPersisted: delivery.isPossiblyPersisted,
      topic: topic)
  }

  /// What the broker's or librdkafka's error number means.
  init(number: Int32, context: String) {
    self.init(response: rd_kafka_resp_err_t(rawValue: number), context: context)
  }
}
