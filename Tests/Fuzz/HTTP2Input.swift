import NIOCore

@testable import HTTP2

/// A client's session with three requests under way that receives anything, in two pieces, and answers.
final class HTTP2Input: SessionDelegate {
  private var fields = 0
  private var bytes = 0
  private var closed: Set<Int32> = []

  private static let request = HTTP2Request(
    ticket: 1, shared: [":method": "POST", ":scheme": "https", ":authority": "localhost"],
    headers: HTTP2Headers(path: "/3/device/00"), body: [1, 2, 3], timeout: .seconds(1))

  static func receive(_ input: [UInt8]) {
    let delegate = HTTP2Input()
    let settings = NGHTTP2Settings(
      isClient: true, streamWindow: 65_535, connectionWindow: 1 << 20, maximumHeaderListSize: 16_384)
    guard let session = try? NGHTTP2Session(settings: settings, delegate: delegate) else { return }
    var output = ByteBuffer()
    for slot in 0..<3 { _ = try? session.submit(request: request, slot: slot) }
    _ = try? session.transmit(into: &output)
    let half = input.count / 2
    // The server begins with SETTINGS; without them nothing else is accepted.
    for piece in [[0, 0, 0, 4, 0, 0, 0, 0, 0], Array(input[..<half]), Array(input[half...])] {
      do throws(NGHTTP2Failure) { try session.receive(ByteBuffer(bytes: piece)) } catch { break }
      _ = try? session.transmit(into: &output)
    }
    _ = try? session.transmit(into: &output)
    precondition(delegate.bytes <= input.count, "more bytes are delivered than were received")
  }

  func sessionDidBeginHeaders(streamID: Int32, slot: Int?) {}
  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
    fields += name.count + value.count
    return true
  }
  func sessionDidReceiveData(_ data: Span<UInt8>, streamID: Int32, slot: Int?) { bytes += data.count }
  func sessionDidReceiveEnd(streamID: Int32, slot: Int?) {}
  func sessionDidCloseStream(streamID: Int32, slot: Int?, code: HTTP2ErrorCode) {
    precondition(closed.insert(streamID).inserted, "a stream is closed twice")
  }
  func sessionDidNotSendHeaders(streamID: Int32, slot: Int?) {}
  func sessionDidReceiveSettings(smallestHeaderTable: Int?) {}
  func sessionDidReceivePingAcknowledgement() {}
  func sessionDidReceiveGoAway(lastStreamID: Int32, code: HTTP2ErrorCode, debugData: [UInt8]) {}
  func sessionNeedsRequest(slot: Int, for use: (HTTP2Request) -> Void) -> Bool {
    use(Self.request)
    return true
  }
  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)? {
    (Self.request.body.prefix(limit), true)
  }
}
