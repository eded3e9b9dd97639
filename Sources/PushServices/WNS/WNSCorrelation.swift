import FanfareCore

/// `MS-CV`: what Microsoft's logs know a request by. Its base is the push's id, so that a push that is sent again can
/// be recognised.
enum WNSCorrelation {
  /// The correlation vector of a push: 22 characters of base64, the length of a base of version 2, and the first
  /// extension.
  static func vector(of id: PushID) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(24)
    Base64.append(id.bytes, alphabet: .standard, to: &text)
    text.append(contentsOf: ".0".utf8)
    return String(decoding: text, as: UTF8.self)
  }
}
