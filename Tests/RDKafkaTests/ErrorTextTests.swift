import Support
import Testing

@testable import RDKafka

/// The words for errors: librdkafka's own text must not reach an operator.
@Suite struct ErrorTextTests {
  @Test(arguments: [
    (
      "sasl_ssl://kafka-1.example.com:9093/bootstrap: Connect to ipv4#10.0.0.7:9093 failed: Connection refused "
        + "(after 12ms in state CONNECT, 30 identical error(s) suppressed)",
      "kafka-1.example.com:9093: Connect to 10.0.0.7:9093 failed: Connection refused"
    ),
    ("127.0.0.1:9092/1: Disconnected (after 2000ms in state UP)", "127.0.0.1:9092: Disconnected"),
    (
      "GroupCoordinator: 127.0.0.1:9092: Connect to ipv6#[::1]:9092 failed: Connection refused "
        + "(after 0ms in state CONNECT)",
      "GroupCoordinator: 127.0.0.1:9092: Connect to [::1]:9092 failed: Connection refused"
    ),
    ("1/1 brokers are down", "1/1 brokers are down"),
    ("[thrd:app]: [thrd:main]: topic a is not known", "topic a is not known"),
    (
      "fanfare.sends: Broker: Unknown topic or partition (UNKNOWN_TOPIC_OR_PART)",
      "fanfare.sends: Unknown topic or partition"
    ),
    ("offsets: Local: Broker transport failure (_TRANSPORT)", "offsets: Broker transport failure"),
  ]) func textsBecomePlainWords(text: String, words: String) {
    let error = RDKafkaError(code: .unreachable, message: text, number: -195)
    #expect(error.words == words && "\(error)" == "unreachable: \(words)")
    // For developers, in a failed test or a debugger.
    #expect(error.debugDescription == "unreachable: \(text) (librdkafka -195)")
  }

  @Test func clientsReportInPlainWordsAboveDebug() {
    let log = LogRecorder()
    for level in [Int32(3), 4, 5, 7] {
      ClientNotice.log(level: level, facility: "CONFWARN", text: "[thrd:app]: ssl://a:1/bootstrap: is wrong").log(
        to: log.logger)
    }
    let lines = log.text.split(separator: "\n").filter { !$0.hasPrefix("debug") }
    #expect(lines.count == 3)
    #expect(lines.allSatisfy { $0.contains("a:1: is wrong") && !$0.contains("thrd") })
  }
}
