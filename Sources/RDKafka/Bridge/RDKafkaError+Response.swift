import CRDKafka

extension RDKafkaError {
  /// The error for a number of librdkafka or the broker.
  ///
  /// `waitedMilliseconds` is the time limit of the call that failed.
  init(response: rd_kafka_resp_err_t, context: String? = nil, waitedMilliseconds: Int32? = nil) {
    let name = unsafe String(cString: rd_kafka_err2name(response))
    let text = unsafe String(cString: rd_kafka_err2str(response))
    let message = "\(text) (\(name))"
    self.init(
      code: Code(response: response),
      message: context.map { "\($0): \(message)" } ?? message,
      number: response.rawValue,
      isFatal: response == RD_KAFKA_RESP_ERR__FATAL)
    if code == .timedOut || code == .unreachable { waited = waitedMilliseconds.map { .milliseconds(Int64($0)) } }
  }

  /// The error of a record whose delivery failed.
  /// It is possibly persisted if it was sent and not acknowledged.
  init(delivery response: rd_kafka_resp_err_t, isPossiblyPersisted: Bool, topic: String) {
    self.init(response: response, context: topic)
    isFatal = false
    switch code {
    case .messageTooLarge, .invalidRecord, .unknownTopic, .unauthorized, .queueFull: break
    default: code = isPossiblyPersisted ? .possiblyPersisted : .notPersisted
    }
  }

  /// Takes ownership of an `rd_kafka_error_t` and frees it.
  init(consuming error: OpaquePointer, context: String) {
    let response = unsafe rd_kafka_error_code(error)
    let text = unsafe String(cString: rd_kafka_error_string(error))
    let isFatal = unsafe rd_kafka_error_is_fatal(error) != 0
    unsafe rd_kafka_error_destroy(error)
    self.init(
      code: isFatal ? .fatal : Code(response: response), message: "\(context): \(text)", number: response.rawValue,
      isFatal: isFatal)
  }
}

extension RDKafkaError.Code {
  /// The kind of an error number.
  init(response: rd_kafka_resp_err_t) {
    self =
      switch response {
      case RD_KAFKA_RESP_ERR__QUEUE_FULL: .queueFull
      case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
        RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
        .messageTooLarge
      // Not errors of timestamps, policies and message formats, which depend on a clock or on the cluster's settings.
      case RD_KAFKA_RESP_ERR_INVALID_RECORD: .invalidRecord
      case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
        .unknownTopic
      case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR__SSL:
        .unauthorized
      case RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
        .timedOut
      case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__RESOLVE,
        RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
        .unreachable
      case RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: .fatal
      case RD_KAFKA_RESP_ERR__STATE: .notAssigned
      case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
        RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
        .rebalancing
      case RD_KAFKA_RESP_ERR__DESTROY: .closed
      case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION: .unsupported
      default: .broker
      }
  }
}

extension RDKafkaError {
  /// The group has given the member's partitions to others, or is about to.
  package static var lostAssignment: RDKafkaError { RDKafkaError(response: RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST) }

  /// Whether the member does not belong to its group any more, and its partitions may have other owners.
  var isOfFormerMember: Bool {
    number == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID.rawValue || number == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST.rawValue
  }
}

extension RDKafkaError {
  /// The error of a delivery that is not an acknowledgement.
  init(delivery: Delivery, topic: String) {
    guard delivery.error != 0 else {
      self.init(code: .possiblyPersisted, message: "\(topic): the broker has only acknowledged a later record")
      return
    }
    self.init(
      delivery: rd_kafka_resp_err_t(rawValue: delivery.error), isPossiblyPersisted: delivery.isPossiblyPersisted,
      topic: topic)
  }

  /// The error for a number of librdkafka or the broker.
  package init(number: Int32, context: String) {
    self.init(response: rd_kafka_resp_err_t(rawValue: number), context: context)
  }
}
