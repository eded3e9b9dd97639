/// Supplies the bearer tokens of SASL OAUTHBEARER.
///
/// Each handle asks when it is created, and again when four fifths of a token's lifetime have passed. Several handles
/// may ask at once. After an error librdkafka asks again within ten seconds. A source bounds the time of its answer.
package protocol KafkaTokenSource: Sendable {
  /// A token that is valid now. The error's description is logged, so it must not contain secrets.
  func token() async throws -> KafkaToken
}

/// A bearer token for Kafka.
package struct KafkaToken: Sendable {
  package var value: String
  /// The end of its validity in milliseconds since 1970.
  package var expiresAtMilliseconds: Int64
  /// The name for the client's side of the exchange. Brokers take theirs from the token.
  package var principal: String
  /// SASL extensions (RFC 7628 §3.1), such as Confluent Cloud's `logicalCluster`.
  package var extensions: [String: String]

  package init(value: String, expiresAtMilliseconds: Int64, principal: String, extensions: [String: String] = [:]) {
    (self.value, self.expiresAtMilliseconds) = (value, expiresAtMilliseconds)
    (self.principal, self.extensions) = (principal, extensions)
  }
}

extension KafkaToken: CustomStringConvertible, CustomReflectable {
  package var description: String { "token of \(principal)" }

  package var customMirror: Mirror { Mirror(self, children: ["principal": principal]) }
}
