import NIOCore

/// Starting and ending requests. Frames are written and completions reported when the turn ends.
extension HTTP2ClientConnection {
  /// Opens a stream for each request of `batch`.
  func start(_ batch: RequestBatch, on session: NGHTTP2Session, now: NIODeadline) {
    for index in batch.requests.indices {
      let request = batch.requests[index]
      let deadline = request.deadline(from: batch.submittedAt)
      guard deadline > now,
        request.patience == request.timeout || batch.submittedAt + TimeAmount(request.patience) > now
      else {
        fail(request, of: batch, .deadlineExceeded, "waited for a free stream")
        continue
      }
      guard request.headerListSize <= headerListLimit else {
        fail(request, of: batch, .requestTooLarge, "its fields take more than \(headerListLimit) bytes")
        continue
      }
      do throws(NGHTTP2Failure) {
        // The session asks for nothing before it transmits, so the stream can take its slot afterwards, and the request
        // is not copied.
        let id = try session.submit(request: request, slot: streams.nextSlot)
        streams.insert(
          ClientStream(
            request: request, submission: batch.submission, submittedAt: batch.submittedAt, resends: batch.resends,
            deadline: deadline, streamID: id))
        earliestDeadline = min(earliestDeadline, deadline)
        history.hasRequested = true
      } catch {
        // No further stream can be opened on this connection. These requests have not been sent, so their resends are
        // not counted.
        var rest = batch
        rest.requests = batch.requests[index...]
        requeueFirst.append(rest)
        stopTaking()
        return
      }
    }
  }

  private func fail(_ request: HTTP2Request, of batch: RequestBatch, _ code: HTTP2RequestError.Code, _ message: String)
  {
    let error = HTTP2RequestError(code, wasPossiblyProcessed: false, message: message)
    completions.add(HTTP2Completion(ticket: request.ticket, result: .failure(error)), for: batch.submission)
  }

  /// Reports the end of the request in `slot` unless it has been reported already. The stream stays until HTTP/2 closes
  /// it.
  func report(_ slot: Int, _ error: HTTP2RequestError) {
    guard let (ticket, submission) = streams.change(slot, { $0.takeReport() }) ?? nil else { return }
    completions.add(HTTP2Completion(ticket: ticket, result: .failure(error)), for: submission)
  }

  /// Reports an answer, unless the request's end has been reported already.
  func reportAnswer(_ slot: Int) {
    let answer = streams.change(slot) { stream in
      stream.takeReport().map { (ticket: $0.ticket, submission: $0.submission, response: stream.takeResponse()) }
    }
    guard let answer = answer ?? nil else { return }
    completions.add(HTTP2Completion(ticket: answer.ticket, result: .success(answer.response)), for: answer.submission)
    if !history.hasAnswered {
      history.hasAnswered = true
      owner.answered(id)
    }
  }

  /// Returns a request that the server has not processed to the pool, or reports it after too many resends.
  func resend(_ stream: ClientStream, after code: HTTP2RequestError.Code) {
    guard stream.resends < settings.configuration.maximumSafeResends else {
      let error = HTTP2RequestError(code, wasPossiblyProcessed: false, message: "sent \(stream.resends + 1) times")
      completions.add(HTTP2Completion(ticket: stream.request.ticket, result: .failure(error)), for: stream.submission)
      return
    }
    let batch = stream.batch(resends: stream.resends + 1)
    if code == .goAway { requeueFirst.append(batch) } else { requeueLast.append(batch) }
  }

  /// Reports `error` for every request that has not been reported, and removes all streams.
  func failStreams(_ error: HTTP2RequestError) {
    for slot in Array(streams.occupied) {
      guard let stream = streams.remove(slot) else { continue }
      completions.add(HTTP2Completion(ticket: stream.request.ticket, result: .failure(error)), for: stream.submission)
    }
  }

  /// Ends the requests whose deadline has passed. Returns whether there is something to send or report.
  func expireStreams(at now: NIODeadline, on session: NGHTTP2Session) -> Bool {
    guard earliestDeadline <= now else { return false }
    var isBusy = false
    var earliest = NIODeadline.distantFuture
    for slot in Array(streams.occupied) {
      guard let deadline = streams[slot]?.deadline else { continue }
      guard deadline <= now else {
        earliest = min(earliest, deadline)
        continue
      }
      expire(slot, at: now, on: session)
      isBusy = true
      if let next = streams[slot]?.deadline, next > now { earliest = min(earliest, next) }
    }
    earliestDeadline = earliest
    return isBusy
  }

  /// Reports the request in `slot` as late and cancels its stream. Servers react badly to a request that is cancelled
  /// half-way, so an unfinished one first gets `sendingGrace` to finish.
  private func expire(_ slot: Int, at now: NIODeadline, on session: NGHTTP2Session) {
    guard let stream = streams[slot], !stream.isReset else { return }
    if !stream.isReported {
      liveness.requestTimedOut()
      report(slot, HTTP2RequestError(.deadlineExceeded, wasPossiblyProcessed: true, message: "no answer in time"))
      if !stream.isSent {
        streams.change(slot) { $0.deadline = now + Self.sendingGrace }
        return
      }
    }
    reset(slot, on: session)
  }

  /// Cancels a stream.
  func reset(_ slot: Int, on session: NGHTTP2Session) {
    guard let stream = streams[slot], !stream.isReset else { return }
    streams.change(slot) {
      $0.isReset = true
      $0.deadline = .distantFuture
    }
    do throws(NGHTTP2Failure) {
      try session.reset(streamID: stream.streamID, code: .cancel)
    } catch {
      fail(HTTP2ConnectionError(.internalFailure, error.message))
    }
  }

  /// How long a request that was reported as late may continue to be sent.
  private static var sendingGrace: TimeAmount { .seconds(5) }
}

/// The session's events. Ends of requests are noted here and reported when the turn ends.
extension HTTP2ClientConnection: SessionDelegate {
  func sessionDidBeginHeaders(streamID: Int32, slot: Int?) { receivingSlot = slot }

  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
    guard let slot = receivingSlot, name.count > 0 else { return true }
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
      else { return true }
      streams.change(slot) { $0.headers.append(name: name, value: value) }
    }
    return true
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
    if code == .refusedStream { return resend(stream, after: history.peerGoAway == nil ? .refused : .goAway) }
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

  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)? {
    streams.change(slot) { $0.takeBody(limit: limit) } ?? ([], true)
  }
}
