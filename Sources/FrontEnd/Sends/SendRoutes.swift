import FanfareCore
import HTTPTypes
import Hummingbird

/// The project's own routes for sends.
struct SendRoutes: Sendable {
  let gate: Gate
  let intake: SendIntake
  let repetitions: Repetitions
  let clock: any WallClock
  let maximumBodySize: Int
  let maximumBatchSize: Int

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.post("api/sends") { request, context in
      let caller = try await gate.admit(request, context, as: .sender)
      return try await caller.hub.metrics.countingRefusals { try await send(request, by: caller) }
    }
    routes.post("api/sends/batch") { request, context in
      let caller = try await gate.admit(request, context, as: .sender)
      return try await caller.hub.metrics.countingRefusals {
        // A thousand lines take milliseconds, in which the connection's event loop must serve others.
        try await withTaskExecutorPreference(globalConcurrentExecutor) {
          try await sendBatch(request, context, by: caller)
        }
      }
    }
  }

  private func send(_ request: Request, by caller: Caller) async throws -> Response {
    let key = try IdempotencyKey(of: request.headers)
    try MediaType.json.require(of: request)
    let body = try await request.bytes(upTo: maximumBodySize)
    let submission = try SendBody.read(
      body, by: caller, traceparent: RequestIdentity.traceparent(of: request.headers), isRepeatable: key != nil,
      at: clock.now())
    let id = try await repetitions.run(key, for: Fingerprint("sends", body: body), of: submission, by: caller) {
      try await intake.accept($0, into: caller.hub)
    }
    return .accepted(
      id, location: caller.hub.location(of: id), status: .accepted, isScheduled: submission.heldUntil != nil)
  }

  private func sendBatch(_ request: Request, _ context: FrontEndContext, by caller: Caller) async throws -> Response {
    let key = try IdempotencyKey(of: request.headers)
    try MediaType.ndjson.require(of: request)
    let body = try await request.bytes(upTo: maximumBatchSize)
    let traceparent = RequestIdentity.traceparent(of: request.headers)
    func read(at time: UnixTime) throws -> SendBatch {
      var batch = try SendBatch(body, maximumSize: maximumBatchSize, maximumLineSize: maximumBodySize)
      batch.read(by: caller, traceparent: traceparent, isRepeatable: key != nil, at: time)
      return batch
    }
    let now = clock.now()
    var batch = try read(at: now)
    guard !batch.lines.isEmpty else { throw Refusal(.malformedBody, "the body has no lines") }
    var claim: SendClaim?
    if let key {
      try caller.hub.quotas?.requireRoomInBurst(for: batch.submissions.count)
      let held = try await repetitions.claim(key, for: Fingerprint("sends/batch", body: body), by: caller, at: now)
      // What was refused then, for a time too far ahead, was not accepted.
      if held.isSettled { batch = try read(at: held.at) }
      batch.identify(by: held)
      claim = held
    }
    let submissions = batch.submissions
    if claim?.isSettled == true {
      // What was refused for good is refused again for the same reason; all else was accepted under these ids.
      batch.settle(submissions.map { intake.check($0.send) })
    } else {
      let results =
        submissions.isEmpty ? [] : try await intake.accept(submissions, into: caller.hub, asWhole: key != nil)
      batch.settle(results)
      if let claim, zip(submissions, results).allSatisfy({ $1.isSuccess || !intake.check($0.send).isSuccess }) {
        try await repetitions.settle(claim)
      }
    }
    batch.countRefusals(in: caller.hub.metrics)
    let answer = batch.answer(requestID: context.requestID)
    return Response(
      status: .ok, headers: [.contentType: "application/x-ndjson"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer)))
  }
}

extension Result {
  fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
