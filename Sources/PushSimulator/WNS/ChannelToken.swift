import FanfareCore

/// The part of a WNS channel's URI that names the channel.
enum ChannelToken {
  /// The value of the query's `token`, its escapes undone; nil when there is none. Takes a whole URI or its path and
  /// query.
  static func token(ofURI uri: some StringProtocol) -> String? {
    guard let mark = uri.utf8.firstIndex(of: UInt8(ascii: "?")) else { return nil }
    for pair in uri.utf8[uri.utf8.index(after: mark)...].split(separator: UInt8(ascii: "&"))
    where pair.starts(with: "token=".utf8) {
      let token = PercentEncoding.decode(pair.dropFirst(6))
      return token.isEmpty ? nil : token
    }
    return nil
  }
}
