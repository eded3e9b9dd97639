import FanfareCore

/// The words of an invented platform.
enum Pager: PlatformVocabulary {
  package static let code: UInt8 = 63
  package static let name = "pager"
  package static let aliases = ["beeper"]
  package static let title = "Pager"
  package static let system = "pageros"
  package static let handleMember = "number"
  package static let absentHandle = "0"
  package static let payloadLimit = 80
  package static let nativeForm = NativePayload.Form.text
  package static let headers: Set = ["pager-tone"]

  package static func normalized(handle: String) -> String { handle.filter { $0 != " " } }

  package static func problem(withHandle handle: String) -> String? {
    normalized(handle: handle).utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      ? nil : "must be a number"
  }

  /// The text that a content shows. Throws if the service would refuse it.
  static func text(of content: Content) throws(ContentFault) -> String {
    let (native, message) = (content.native[platform], content.message)
    let text = native?.text ?? [message?.title, message?.body].compactMap(\.self).joined(separator: ": ")
    let field = native == nil ? "message" : "native.pager"
    guard !text.isEmpty else { throw .empty(field) }
    guard text.utf8.count <= payloadLimit else { throw .tooLarge(field, limit: payloadLimit, of: title) }
    return text
  }

  package static func check(_ content: Content, collapseKey: String?) throws(ContentFault) { _ = try text(of: content) }

  package static func notice(_ text: String) -> NativePayload { .text(text) }
  package static func announcement(of id: SecurePayloadID) -> NativePayload { .text(id.description) }
}
