import CRDKafka
import Logging

/// An event of a handle other than records and deliveries.
enum ClientNotice: Sendable {
  /// A line of librdkafka's log; `level` as in syslog.
  case log(level: Int32, facility: String, text: String)
  /// An error of the client as a whole. After a fatal error the handle cannot be used any more.
  case error(RDKafkaError)

  /// Reads the event, which must be of type LOG or ERROR.
  init?(event: OpaquePointer, handle: Handle) {
    switch unsafe rd_kafka_event_type(event) {
    case RD_KAFKA_EVENT_LOG:
      var facility: UnsafePointer<CChar>?
      var text: UnsafePointer<CChar>?
      var level: Int32 = 7
      guard unsafe rd_kafka_event_log(event, &facility, &text, &level) == 0, let facility = unsafe facility,
        let text = unsafe text
      else { return nil }
      self = unsafe .log(level: level, facility: String(cString: facility), text: String(cString: text))
    case RD_KAFKA_EVENT_ERROR:
      let response = unsafe rd_kafka_event_error(event)
      // The number is the fatal error's cause or just _FATAL, depending on the part that raised it.
      let isFatal = unsafe response == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_event_error_is_fatal(event) != 0
      if isFatal, let fatal = handle.fatalError {
        self = .error(fatal)
      } else {
        var error = RDKafkaError(response: response)
        if let text = unsafe rd_kafka_event_error_string(event) { error.message = unsafe String(cString: text) }
        self = .error(error)
      }
    default: return nil
    }
  }

  /// Whether a connection to a broker was lost or could not be made.
  var isLostConnection: Bool {
    if case .error(let error) = self { error.code == .unreachable } else { false }
  }

  /// Whether librdkafka has lost each of its connections once, which ``Reachability`` must confirm: idle connections
  /// and those that were opened again since are counted.
  var isOutage: Bool {
    if case .error(let error) = self { error.number == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN.rawValue } else { false }
  }

  /// Writes the notice to the log, at the level of what an operator must do.
  ///
  /// librdkafka reports a broken connection twice, as an event and as a line of its log, and of each broker. Most heal:
  /// only an outage of the whole cluster is an error, which ``Reachability`` reports.
  func log(to logger: Logger) {
    switch self {
    case .log(let level, let facility, let text):
      let level = Self.level(syslog: level, facility: facility)
      // As it is, for developers only.
      let words = level <= .debug ? text : RDKafkaError.plain(text)
      logger.log(
        level: level, "Kafka client reports",
        metadata: [LogKeys.facility: "\(facility)", LogKeys.text: "\(words)"])
    case .error(let error):
      let metadata: Logger.Metadata = [LogKeys.error: "\(error)"]
      if error.isFatal {
        logger.error("Kafka client has failed", metadata: metadata)
      } else if isOutage {
        logger.debug("Each connection to Kafka has failed", metadata: metadata)
      } else if error.code == .unreachable || error.code == .timedOut {
        logger.info("Connection to a Kafka broker failed", metadata: [LogKeys.connection: "\(error.words)"])
      } else if error.code == .unauthorized {
        logger.error("Kafka refuses this client", metadata: metadata)
      } else {
        logger.warning("Kafka client reports an error", metadata: metadata)
      }
    }
  }

  private static func level(syslog level: Int32, facility: String) -> Logger.Level {
    switch (level, facility) {
    // Error events say the same.
    case (_, "FAIL"), (_, "ERROR"): .debug
    // Concerns only brokers older than 0.11, such as the embedded cluster.
    case (_, "AUTOCREATE"): .debug
    case (...2, _): .error
    case (3...4, _): .warning
    case (5, _): .info
    default: .debug
    }
  }
}
