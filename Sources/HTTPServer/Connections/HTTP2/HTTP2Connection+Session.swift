import HTTP2
import NIOCore

/// What the session tells of the client's frames.
extension HTTP2Connection: SessionDelegate {
  func sessionWillReceiveFrame(hasData: Bool, isContinuation: Bool) {
    if !isContinuation { arrival.frameBegan(beyond: ignoredSize) }
    if !hasData, !frames.takeFrame(at: .now()) { end(.enhanceYourCalm) }
  }

  func sessionDidBeginHeaders(streamID: Int32, slot: Int?) {
    arrival.stream = nil
    arrival.headerBytes = 0
    // Trailers are ignored.
    guard streams[streamID] == nil else { return }
    session?.attach(slot: Int(streamID), to: streamID)
    arrival.stream = add(streamID)
  }

  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
    // A small block can expand to a huge list, that of ignored trailers too. nghttp2 examines each of its bytes.
    arrival.headerBytes += name.count + value.count
    if arrival.headerBytes > 4 * limits.head.size { end(.enhanceYourCalm) }
    guard !isEnding else { return false }
    arrival.stream?.head.add(name: name, value: value, within: limits.head)
    return true
  }

  func sessionDidReceiveHeaders(streamID: Int32, slot: Int?) { arrival.incomplete.append(streamID) }

  func sessionDidReceiveData(_ data: Span<UInt8>, streamID: Int32, slot: Int?) {
    guard let stream = streams[streamID] else { return }
    stream.unconsumed += data.count
    guard stream.isHandedOver else { return stream.collected.append(copying: data) }
    if !stream.add(data) { consume(stream) }
  }

  func sessionDidReceiveEnd(streamID: Int32, slot: Int?) {
    guard let stream = streams[streamID] else { return }
    stream.isRequestEnded = true
    stream.bodyTimer?.cancel()
    if stream.isHandedOver { stream.body?.end() } else { handOverWhole(stream) }
  }

  func sessionDidCloseStream(streamID: Int32, slot: Int?, code: HTTP2.HTTP2ErrorCode) {
    guard let stream = streams[streamID] else { return }
    // An answer without a body is called sent when it is submitted; a client that resets its stream gains nothing.
    if stream.answer.isSent, code == .noError {
      frames.addAnswer()
    } else if !frames.takeEndedStream(at: .now()) {
      end(.enhanceYourCalm)
    }
    remove(stream)
  }

  // These concern clients.
  func sessionDidNotSendHeaders(streamID: Int32, slot: Int?) {}
  func sessionDidReceiveSettings(smallestHeaderTable: Int?) {}
  func sessionDidReceivePingAcknowledgement() {}
  func sessionDidReceiveGoAway(lastStreamID: Int32, code: HTTP2.HTTP2ErrorCode, debugData: [UInt8]) {}
  func sessionNeedsRequest(slot: Int, for use: (HTTP2Request) -> Void) -> Bool { false }

  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)? {
    guard let stream = streams[Int32(slot)] else { return ([], true) }
    guard let (piece, isLast) = stream.answer.next(upTo: limit) else { return nil }
    frames.addDataFrame()
    handover.waitingBytes -= piece.count
    if stream.answer.waitingBytes == 0 { stream.resumeWriter() }
    // RFC 9113 §8.1: asks the client to stop sending what nobody reads. Fails only if the session has ended.
    if isLast, !stream.isRequestEnded { try? session?.reset(streamID: stream.id, code: .noError) }
    return (piece, isLast)
  }
}
