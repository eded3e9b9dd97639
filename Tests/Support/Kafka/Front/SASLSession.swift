import Crypto
import Foundation
import NIOCore
import Synchronization

/// The accounts and tokens that a ``KafkaFront`` knows, and the logins so far.
package final class KafkaAccounts: Sendable {
  /// One attempt to authenticate.
  package struct Login: Sendable, Hashable {
    package let mechanism: String
    package let name: String
    package let isAccepted: Bool
  }

  private struct State {
    var passwords: [String: String]
    var tokens: Set<String>
    var logins: [Login] = []
  }

  private let state: Mutex<State>

  package init(passwords: [String: String] = [:], tokens: Set<String> = []) {
    state = Mutex(State(passwords: passwords, tokens: tokens))
  }

  /// The attempts so far.
  package var logins: [Login] { state.withLock(\.logins) }

  /// Replaces the password of an account.
  package func setPassword(_ password: String, of user: String) { state.withLock { $0.passwords[user] = password } }

  /// Replaces the accepted tokens.
  package func accept(tokens: Set<String>) { state.withLock { $0.tokens = tokens } }

  func password(of user: String) -> String? { state.withLock { $0.passwords[user] } }

  func isKnown(token: String) -> Bool { state.withLock { $0.tokens.contains(token) } }

  func note(_ login: Login) { state.withLock { $0.logins.append(login) } }
}

/// The server's side of SASL on one connection: SaslHandshake and SaslAuthenticate with PLAIN, SCRAM, OAUTHBEARER.
struct SASLSession: Sendable {
  private static let mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
  private static let iterations = 4096

  private struct Challenge {
    let user: String
    let nonce: String
    let salt: [UInt8]
    /// What client and server have sent, for the signatures.
    let exchanged: String
  }

  let accounts: KafkaAccounts
  private var mechanism = ""
  private var challenge: Challenge?
  private var isAuthenticated = false

  init(accounts: KafkaAccounts) { self.accounts = accounts }

  /// Whether the request may be forwarded now.
  func permits(_ head: RequestHead) -> Bool {
    isAuthenticated || FrontConnection.Key(rawValue: head.key) == .apiVersions
  }

  /// The answer to a request of the exchange; nil for other requests.
  mutating func answer(_ head: RequestHead) -> ByteBuffer? {
    var (head, answer) = (head, head.answer)
    switch FrontConnection.Key(rawValue: head.key) {
    case .saslHandshake:
      mechanism = head.body.readKafkaString() ?? ""
      // UNSUPPORTED_SASL_MECHANISM
      answer.writeInteger(Int16(Self.mechanisms.contains(mechanism) ? 0 : 33))
      answer.writeInteger(Int32(Self.mechanisms.count))
      for mechanism in Self.mechanisms { answer.writeKafkaString(mechanism) }
    case .saslAuthenticate:
      let count = Int(head.body.readInteger(as: Int32.self) ?? 0)
      let reply = step(head.body.readBytes(length: max(0, count)) ?? [])
      // SASL_AUTHENTICATION_FAILED
      answer.writeInteger(Int16(reply == nil ? 58 : 0))
      answer.writeKafkaString(reply == nil ? "Authentication failed" : nil)
      answer.writeInteger(Int32(reply?.utf8.count ?? 0))
      answer.writeString(reply ?? "")
    default: return nil
    }
    return answer
  }

  /// The server's next message; nil for a refusal.
  private mutating func step(_ bytes: [UInt8]) -> String? {
    let message = String(decoding: bytes, as: UTF8.self)
    switch mechanism {
    case "PLAIN":
      let parts = message.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 3 else { return nil }
      return finish(name: parts[1], isAccepted: accounts.password(of: parts[1]) == parts[2]) ? "" : nil
    case "OAUTHBEARER":
      let field = message.split(separator: "\u{1}").first { $0.hasPrefix("auth=Bearer ") }
      let token = String(field?.dropFirst("auth=Bearer ".count) ?? "")
      return finish(name: "", isAccepted: accounts.isKnown(token: token)) ? "" : nil
    case "SCRAM-SHA-256": return scram(message, SHA256.self)
    case "SCRAM-SHA-512": return scram(message, SHA512.self)
    default: return nil
    }
  }

  private mutating func finish(name: String, isAccepted: Bool) -> Bool {
    accounts.note(KafkaAccounts.Login(mechanism: mechanism, name: name, isAccepted: isAccepted))
    isAuthenticated = isAccepted
    return isAccepted
  }

  /// RFC 5802.
  private mutating func scram<Hash: HashFunction>(_ message: String, _: Hash.Type) -> String? {
    func field(_ name: String) -> String? {
      message.split(separator: ",").first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(2)) }
    }
    guard let challenge else {
      guard message.hasPrefix("n,,"), let user = field("n"), let nonce = field("r") else { return nil }
      let salt = (0..<16).map { _ in UInt8.random(in: 0...255) }
      let both = nonce + "server"
      let first = "r=\(both),s=\(Data(salt).base64EncodedString()),i=\(Self.iterations)"
      self.challenge = Challenge(user: user, nonce: both, salt: salt, exchanged: "\(message.dropFirst(3)),\(first)")
      return first
    }
    // librdkafka before 2.6.1 repeats its own part of the nonce, which brokers before 4.0 tolerate.
    guard let nonce = field("r"), nonce.hasSuffix(challenge.nonce), let proof = field("p"),
      let password = accounts.password(of: challenge.user), let sent = Data(base64Encoded: proof)
    else { return finish(name: challenge.user, isAccepted: false) ? "" : nil }
    let salted = Self.salted(Array(password.utf8), salt: challenge.salt, Hash.self)
    func hmac(_ key: [UInt8], _ text: some DataProtocol) -> [UInt8] {
      Array(HMAC<Hash>.authenticationCode(for: text, using: SymmetricKey(data: key)))
    }
    let signed = Array(
      "\(challenge.exchanged),\(message[..<(message.range(of: ",p=")?.lowerBound ?? message.endIndex)])".utf8)
    let clientKey = hmac(salted, Array("Client Key".utf8))
    let signature = hmac(Array(Hash.hash(data: clientKey)), signed)
    let expected = zip(clientKey, signature).map { $0 ^ $1 }
    guard finish(name: challenge.user, isAccepted: Array(sent) == expected) else { return nil }
    return "v=" + Data(hmac(hmac(salted, Array("Server Key".utf8)), signed)).base64EncodedString()
  }

  /// PBKDF2 with one block.
  private static func salted<Hash: HashFunction>(_ password: [UInt8], salt: [UInt8], _: Hash.Type) -> [UInt8] {
    let key = SymmetricKey(data: password)
    var round = Array(HMAC<Hash>.authenticationCode(for: salt + [0, 0, 0, 1], using: key))
    var result = round
    for _ in 1..<iterations {
      round = Array(HMAC<Hash>.authenticationCode(for: round, using: key))
      for index in result.indices { result[index] ^= round[index] }
    }
    return result
  }
}
