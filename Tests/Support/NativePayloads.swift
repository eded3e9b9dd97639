package import FanfareCore

/// Native payloads by the platforms' names, for tests.
extension Content {
  package static func of(
    message: Message? = nil, apns: [UInt8]? = nil, fcm: [UInt8]? = nil, wns: String? = nil,
    headers: [String: String] = [:]
  ) -> Content {
    var native = NativePayloads()
    (native.apns, native.fcm, native.wns) = (apns, fcm, wns)
    return Content(message: message, native: native, headers: headers)
  }

  package var apns: [UInt8]? { native.apns }
  package var fcm: [UInt8]? { native.fcm }
  package var wns: String? { native.wns }
}

extension NativePayloads {
  package var apns: [UInt8]? {
    get { json(.apns) }
    set { self[.apns] = newValue.map { .json($0) } }
  }
  package var fcm: [UInt8]? {
    get { json(.fcm) }
    set { self[.fcm] = newValue.map { .json($0) } }
  }
  package var wns: String? {
    get { self[.wns]?.text }
    set { self[.wns] = newValue.map { .text($0) } }
  }

  private func json(_ platform: Platform) -> [UInt8]? {
    if case .json(let bytes) = self[platform] { bytes } else { nil }
  }
}
