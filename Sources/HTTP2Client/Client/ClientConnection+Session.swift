import NIOCore

/// The session's events. Ends of requests are noted here and reported when the turn ends.
extension ClientConnection: SessionDelegate {
  func sessionDidBeginHeaders(streamID: Int32, slot: Int?) { receivingSlot = slot }

  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>) {
    guard let slot = receivingSlot, name.count > 0 else { return }
    if name[0] == UInt8(ascii: ":") {
      // nghttp2 has checked that `:status` is the only pseudo field and has three digits. The final answer replaces an
      // interim one (1xx).
      var status = 0
      for index in value.indices { status = status * 10 + Int(value[index] &- UInt8(ascii: "0")) }
      streams.change(slot) {
        $0.status = status
        if !$0.headers.isEmpty { $0.headers = HTTP2Headers() }
      }
    } else if settings.keptHeaders.contains(where: { $0.span.isEqual(to: name) }) {
      // A small block can expand to a huge list, so fields beyond the announced size are dropped.
      guard let size = streams[slot]?.headers.listSize, size + name.count + value.count <= Self.maximumHeaderListSize
      else {
        return
      }
      streams.change(slot) { $0.headers.append(name: name, value: value) }
    }
  }

  func sessionDidReceiveData(_ data: Span<UInt8>, streamID: Int32, slot: Int?) {
    guard let slot, let isReported = streams[slot]?.isReported, !isReported, let session else { return }
    guard (streams[slot]?.body.count ?? 0) + data.count <= settings.configuration.maximumResponseBodyBytes else {
      let message =
        "status \(streams[slot]?.status ?? 0), more than \(settings.configuration.maximumResponseBodyBytes) bytes"
      report(slot, HTTP2RequestError(.responseTooLarge, wasPossiblyProcessed: true, message: message))
      return reset(slot, on: session)
    }
    streams.change(slot) { $0.body.append(copying: data) }
  }

  func sessionDidReceiveEnd(streamID: Int32, slot: Int?) {
    if let slot { reportAnswer(slot) }
  }

  func sessionDidCloseStream(streamID: Int32, slot: Int?, code: HTTP2ErrorCode) {
    guard let slot, let stream = streams.remove(slot) else { return }
    if code == .refusedStream {
      return resend(stream, after: history.peerGoAway == nil ? .refused : .goAway)
    }
    let error = HTTP2RequestError(.streamReset(code), wasPossiblyProcessed: code != .http11Required)
    completions.add(HTTP2Completion(ticket: stream.request.ticket, result: .failure(error)), for: stream.submission)
  }

  func sessionDidNotSendHeaders(streamID: Int32, slot: Int?) {
    guard let slot, let stream = streams.remove(slot) else { return }
    requeueFirst.append(stream.batch(resends: stream.resends))
  }

  func sessionDidReceiveSettings(smallestHeaderTable: Int?) {
    guard let session else { return }
    let limit = min(session.peerStreamLimit, settings.configuration.maximumStreamsPerConnection)
    headerListLimit = min(session.peerHeaderListLimit, Self.largestHeaderList)
    session.limitHeaderTable(smallest: smallestHeaderTable)
    if case .handshaking = phase {
      streamLimit = limit
      phase = .open
      history.openedAt = .now()
      owner.opened(id, streamLimit: limit)
    } else if limit != streamLimit {
      streamLimit = limit
      owner.observe(.streamLimitChanged(connection: id, streamLimit: limit))
    }
  }

  func sessionDidReceivePingAcknowledgement() { liveness.pingAnswered() }

  func sessionDidReceiveGoAway(lastStreamID: Int32, code: HTTP2ErrorCode, debugData: [UInt8]) {
    history.peerGoAway = code
    owner.observe(.goAway(connection: id, code: code, lastStreamID: lastStreamID, debugData: debugData))
    stopTaking()
  }

  func sessionNeedsRequest(slot: Int, for use: (HTTP2Request) -> Void) -> Bool {
    streams.change(slot) { use($0.request) } != nil
  }

  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool) {
    streams.change(slot) { $0.takeBody(limit: limit) } ?? ([], true)
  }
}
