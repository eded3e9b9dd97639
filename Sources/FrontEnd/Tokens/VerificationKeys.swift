import FanfareCore
import JWTKit

/// The public keys of a JSON Web Key Set (RFC 7517), for the algorithms of the configuration.
///
/// A key is used with the algorithms that the configuration allows and its own type and `alg` permit, never with
/// another one that a token names. Keys of other types and uses, such as those for encryption, are skipped.
struct VerificationKeys: Sendable {
  /// The most bytes of a key set.
  static let maximumSize = 512 * 1024
  /// The most keys that are used.
  static let maximumCount = 100

  /// Why a text is not a usable key set. Contains nothing of it.
  struct Unusable: Error, CustomStringConvertible {
    let description: String
  }

  /// The keys by id; those without id are under nil.
  private let keys: [String?: [TokenAlgorithm: VerificationKey]]

  /// The ids of the keys that have one.
  var ids: [String] { keys.keys.compactMap { $0 } }

  /// Parses a key set. Throws if it is not one, or has no usable key.
  init(_ json: [UInt8], algorithms: Set<TokenAlgorithm>) async throws(Unusable) {
    guard json.count <= Self.maximumSize else {
      throw Unusable(description: "has more than \(Self.maximumSize) bytes")
    }
    let claims: TokenClaims
    do throws(TokenRefusal) { claims = try TokenClaims(json) } catch { throw Unusable(description: "is not JSON") }
    guard case .list(let list) = claims["keys"] else { throw Unusable(description: "has no list named keys") }
    var keys: [String?: [TokenAlgorithm: VerificationKey]] = [:]
    var count = 0
    for case .object(let members) in list {
      let key = Key(members)
      for algorithm in key.algorithms.intersection(algorithms) where keys[key.id]?[algorithm] == nil {
        guard let verifier = await key.verifier(algorithm) else { continue }
        count += 1
        guard count <= Self.maximumCount else { throw Unusable(description: "has more than \(Self.maximumCount) keys") }
        keys[key.id, default: [:]][algorithm] = verifier
      }
    }
    guard count > 0 else {
      let names = algorithms.map(\.rawValue).sorted().joined(separator: ", ")
      throw Unusable(description: "has no key for signatures with \(names)")
    }
    self.keys = keys
  }

  /// The key that verifies tokens with this id and algorithm; nil if there is none.
  ///
  /// A token without an id gets the only key of its algorithm, if there is only one.
  func key(_ id: String?, _ algorithm: TokenAlgorithm) -> VerificationKey? {
    if let id { return keys[id]?[algorithm] }
    let candidates = keys.values.compactMap { $0[algorithm] }
    return candidates.count == 1 ? candidates[0] : nil
  }
}

/// A public key for one algorithm.
struct VerificationKey: Sendable {
  fileprivate let algorithm: any JWTAlgorithm

  /// Whether the key made the token's signature.
  func verifies(_ token: JSONWebToken) -> Bool {
    // An error means a signature of the wrong size.
    (try? algorithm.verify(token.signature, signs: token.signedBytes)) ?? false
  }
}

/// A member of a key set.
private struct Key {
  let id: String?
  /// The algorithms that the key's type, `use`, `key_ops` and `alg` permit.
  let algorithms: Set<TokenAlgorithm>
  private let members: [String: TokenClaims.Value]

  init(_ members: [String: TokenClaims.Value]) {
    self.members = members
    func text(_ name: String) -> String? { if case .text(let text) = members[name] { text } else { nil } }
    id = text("kid")
    var algorithms: Set<TokenAlgorithm> =
      switch (text("kty"), text("crv")) {
      case ("RSA", _): [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]
      case ("EC", "P-256"): [.es256]
      case ("EC", "P-384"): [.es384]
      case ("EC", "P-521"): [.es512]
      case ("OKP", "Ed25519"): [.edDSA]
      default: []
      }
    if let use = text("use"), use != "sig" { algorithms = [] }
    if case .list(let operations) = members["key_ops"], !operations.contains(.text("verify")) { algorithms = [] }
    if let name = text("alg") { algorithms.formIntersection(TokenAlgorithm(rawValue: name).map { [$0] } ?? []) }
    self.algorithms = algorithms
  }

  /// Makes the verifier of one algorithm; nil if the key is invalid, or an RSA key of fewer than 2048 bits.
  func verifier(_ algorithm: TokenAlgorithm) async -> VerificationKey? {
    // A collection of one key: its algorithm is fixed here, not by a token.
    let keys = JWTKeyCollection()
    do {
      switch algorithm {
      case .rs256: await keys.add(rsa: try rsa(), digestAlgorithm: .sha256)
      case .rs384: await keys.add(rsa: try rsa(), digestAlgorithm: .sha384)
      case .rs512: await keys.add(rsa: try rsa(), digestAlgorithm: .sha512)
      case .ps256: await keys.add(pss: try rsa(), digestAlgorithm: .sha256)
      case .ps384: await keys.add(pss: try rsa(), digestAlgorithm: .sha384)
      case .ps512: await keys.add(pss: try rsa(), digestAlgorithm: .sha512)
      case .es256: await keys.add(ecdsa: try ES256PublicKey(parameters: point()))
      case .es384: await keys.add(ecdsa: try ES384PublicKey(parameters: point()))
      case .es512: await keys.add(ecdsa: try ES512PublicKey(parameters: point()))
      case .edDSA: await keys.add(eddsa: try EdDSA.PublicKey(x: try text("x"), curve: .ed25519))
      }
      return VerificationKey(algorithm: try await keys.getKey())
    } catch {
      return nil
    }
  }

  private struct Missing: Error {}

  private func text(_ name: String) throws -> String {
    guard case .text(let text) = members[name] else { throw Missing() }
    return text
  }

  private func rsa() throws -> Insecure.RSA.PublicKey {
    try Insecure.RSA.PublicKey(modulus: try text("n"), exponent: try text("e"))
  }

  private func point() throws -> ECDSAParameters { (x: try text("x"), y: try text("y")) }
}
