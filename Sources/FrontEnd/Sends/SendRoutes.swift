import FanfareCore
import HTTPServer
import HTTPTypes
import Operations

/// The project's own routes for posting sends.
struct SendRoutes: Sendable {
  let access: AccessControl
  let intake: SendIntake
  let idempotency: Idempotency
  let templates: HubTemplates
  let local: LocalSends
  let clock: any WallClock
  let maximumBodySize: Int
  let maximumBatchSize: Int

  var routes: [Route] {
    [
      .direct(.post, "api/sends", Scope.sending) { exchange, caller in
        try caller.hub.metrics.countingRefusals { try send(exchange, by: caller) }
      },
      Route(.post, "api/sends/batch", Scope.sending) { exchange, caller in
        try await caller.hub.metrics.countingRefusals {
          // A thousand lines take milliseconds: not on the connection's event loop, which serves other connections.
          try await withTaskExecutorPreference(globalConcurrentExecutor) {
            try await sendBatch(exchange, by: caller)
          }
        }
      },
    ]
  }

  private func send(_ exchange: Exchange, by caller: Caller) throws -> Reply {
    let key = try IdempotencyKey(of: exchange)
    try MediaType.json.require(of: exchange)
    guard exchange.body.isAtHand else {
      return .later { exchange in
        let body = try await exchange.bytes(upTo: maximumBodySize)
        return try await accept(body, key, of: exchange, by: caller).answer(to: exchange)
      }
    }
    return try accept(try exchange.arrivedBytes(upTo: maximumBodySize), key, of: exchange, by: caller)
  }

  private func accept(
    _ body: ArraySlice<UInt8>, _ key: IdempotencyKey?, of exchange: Exchange, by caller: Caller
  ) throws -> Reply {
    let now = clock.now()
    let submission = try Submission(
      reading: body, from: SendOrigin(exchange, by: caller, at: now), isRepeatable: key != nil)
    if key == nil, !submission.isHeld, let mailbox = exchange.memory?.mailbox,
      let resolved = try submission.resolvedFromMemory(of: templates),
      try mailbox.take(resolved, of: exchange, by: caller, state: .accepted)
    {
      return .taken
    }
    return .later { _ in
      let submission = try await submission.resolved(by: templates)
      if let time = submission.local {
        var claim: SendClaim?
        if let key {
          claim = try await idempotency.claim(key, for: Fingerprint("sends", body: body), by: caller, at: now)
        }
        return try await local.accept(submission, at: time, under: claim, by: caller)
      }
      let id = try await idempotency.run(
        key, for: Fingerprint("sends", body: body), by: caller, at: now, id: submission.send.id
      ) { try await intake.accept(submission.identified(as: $0), into: caller.hub) }
      return AcceptedSend(id: id, hub: caller.hub, state: submission.isHeld ? .scheduled : .accepted).answer
    }
  }

  private func sendBatch(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let key = try IdempotencyKey(of: exchange)
    try MediaType.ndjson.require(of: exchange)
    let body = try await exchange.bytes(upTo: maximumBatchSize)
    func read(at time: UnixTime) async throws -> SendBatch {
      var batch = try SendBatch(body, maximumSize: maximumBatchSize, maximumLineSize: maximumBodySize)
      batch.read(from: SendOrigin(exchange, by: caller, at: time), isRepeatable: key != nil)
      try await batch.resolve(by: templates)
      return batch
    }
    let now = clock.now()
    var batch = try await read(at: now)
    guard !batch.isEmpty else { throw Refusal(.malformedBody, "the body has no lines") }
    var claim: SendClaim?
    if let key {
      try caller.hub.quotas.requireRoomInBurst(for: batch.submissions.count, by: caller.user)
      let held = try await idempotency.claim(key, for: Fingerprint("sends/batch", body: body), by: caller, at: now)
      // Lines that were scheduled too far ahead at the first request must be refused again.
      if held.isSettled { batch = try await read(at: held.at) }
      batch.identify(by: held)
      claim = held
    }
    let submissions = batch.submissions
    if submissions.isEmpty { await caller.hub.quotas.countRefused(exchange.bodyPermits, by: caller.user, at: now) }
    if claim?.isSettled == true {
      // Lines that can never be accepted are refused again; all others were accepted under these ids.
      batch.settle(submissions.map { intake.check($0.send) })
    } else {
      let results =
        submissions.isEmpty ? [] : try await intake.accept(submissions, into: caller.hub, asWhole: key != nil)
      batch.settle(results)
      if let claim, zip(submissions, results).allSatisfy({ $1.isSuccess || !intake.check($0.send).isSuccess }) {
        try await idempotency.settle(claim)
      }
    }
    batch.countRefusals(in: caller.hub.metrics)
    for (code, event) in [(.forbidden, .forbidden), (.overQuota, .overQuota)] as [(ProblemCode, SecurityLog.Event)] {
      let lines = batch.refusals(code)
      if lines > 0 { access.security.record(event, for: exchange, by: caller, details: ["lines": "\(lines)"]) }
    }
    let answer = batch.answer(requestID: exchange.id)
    return Answer(status: .ok, headers: [.contentType: "application/x-ndjson"], body: answer)
  }
}

/// A durable send, which is answered with 202, its id and state, or without a state with 200 and its id.
/// The apps in the field show any other status than 200 as an error.
struct AcceptedSend: Sendable {
  static let contentType = "application/json"

  let id: SendID
  let hub: HubEntry
  let state: SendReport.State?

  var status: HTTPResponse.Status { state == nil ? .ok : .accepted }

  /// The value of `Location`.
  var location: String { hub.location(of: id) }

  var body: [UInt8] {
    JSONWriter.object(capacity: 72) {
      $0.member("id", id)
      if let state { $0.member("state", state.rawValue) }
    }
  }

  var answer: Answer { .json(body, status: status, location: location) }

  /// The same with the fields of every answer.
  func brief(requestID: String, date: String) -> BriefAnswer {
    BriefAnswer(
      status: status, contentType: Self.contentType, location: location, body: body, requestID: requestID, date: date)
  }
}

extension Result {
  fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}

/// A batch of sends: one line each, and one answer each in the same order.
struct SendBatch {
  /// The state of a line.
  private enum Line {
    case unread(ArraySlice<UInt8>)
    case read(Submission)
    case accepted(SendID)
    case refused(Refusal)
  }

  /// Fewer bytes than the shortest valid line, `{"to":{"tag":"a"},"native":{"wns":"a"}}`.
  private static let minimumLineSize = 32
  /// The refused lines that are answered with a whole problem document. Of all others only status and code are named:
  /// a batch of nonsense must not be answered with many times its size.
  private static let wholeProblems = 100

  private var lines: [Line] = []
  private let maximumLineSize: Int

  /// Splits a body into lines.
  /// Blank lines count, so that answers can be counted off, except those at the end.
  ///
  /// Throws `.tooLarge` for more lines than a batch of `maximumSize` bytes can have sends. Each refused line is
  /// answered with hundreds of bytes: a body of line feeds must not be answered with hundreds of times its size.
  init(_ body: ArraySlice<UInt8>, maximumSize: Int, maximumLineSize: Int) throws(Refusal) {
    self.maximumLineSize = maximumLineSize
    var rest = body[..<(body.lastIndex { !Self.isBlank($0) }.map { $0 + 1 } ?? body.startIndex)]
    let most = maximumSize / Self.minimumLineSize
    while !rest.isEmpty {
      guard lines.count < most else { throw Refusal(.tooLarge, "the batch has more than \(most) lines") }
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      lines.append(.unread(rest[rest.startIndex..<end]))
      rest = end == rest.endIndex ? [] : rest[(end + 1)...]
    }
  }

  var isEmpty: Bool { lines.isEmpty }

  /// Reads and validates every line.
  mutating func read(from origin: SendOrigin, isRepeatable: Bool) {
    for index in lines.indices {
      guard case .unread(let bytes) = lines[index] else { continue }
      guard bytes.count <= maximumLineSize else {
        lines[index] = .refused(Refusal(.tooLarge, "the line has more than \(maximumLineSize) bytes"))
        continue
      }
      do throws(Refusal) {
        let submission = try Submission(reading: bytes, from: origin, isRepeatable: isRepeatable)
        // It is several sends, and a line has one answer.
        guard submission.local == nil else { throw Refusal(.invalidField, "timeZone is not possible in a batch") }
        lines[index] = .read(submission)
      } catch {
        lines[index] = .refused(error)
      }
    }
  }

  /// Resolves the templates that valid lines name. Throws the error of the store.
  mutating func resolve(by templates: HubTemplates) async throws {
    for index in lines.indices {
      guard case .read(let send) = lines[index], send.namesTemplate else { continue }
      do {
        lines[index] = .read(try await send.resolved(by: templates))
      } catch let refusal as Refusal {
        lines[index] = .refused(refusal)
      }
    }
  }

  /// Gives every valid line the id that it has under the claim.
  mutating func identify(by claim: SendClaim) {
    for index in lines.indices {
      if case .read(let send) = lines[index] { lines[index] = .read(send.identified(as: claim.sendID(line: index))) }
    }
  }

  /// The sends of the valid lines, in order.
  var submissions: [Submission] {
    lines.compactMap { if case .read(let send) = $0 { send } else { nil } }
  }

  /// Records the results of `submissions`.
  mutating func settle(_ results: [Result<Void, Refusal>]) {
    var results = results.makeIterator()
    for index in lines.indices {
      guard case .read(let submission) = lines[index], let result = results.next() else { continue }
      switch result {
      case .success: lines[index] = .accepted(submission.send.id)
      case .failure(let refusal): lines[index] = .refused(refusal)
      }
    }
  }

  /// The number of lines that were refused for a reason.
  func refusals(_ code: ProblemCode) -> Int {
    lines.count { if case .refused(let refusal) = $0 { refusal.code == code } else { false } }
  }

  /// Counts the refused lines.
  func countRefusals(in metrics: HubMetrics) {
    for case .refused(let refusal) in lines { metrics.refuse(refusal.code) }
  }

  /// Returns one line per line: `{"id":…}`, or `{"error":…}` with the problem document of that send, abbreviated after
  /// the first hundred.
  func answer(requestID: String) -> [UInt8] {
    var writer = JSONWriter(capacity: lines.count * 48)
    var refused = 0
    for line in lines {
      writer.object {
        switch line {
        case .accepted(let id): $0.member("id", id)
        case .refused(let refusal):
          refused += 1
          let problem = Problem(refusal: refusal, requestID: requestID)
          $0.member("error", json: refused <= Self.wholeProblems ? problem.document : problem.abbreviation)
        // `read` leaves no line unread and `settle` leaves none read. A missing answer would shift all later ones.
        case .unread, .read: fatalError("a line of a batch was neither accepted nor refused")
        }
      }
      writer.endLine()
    }
    return writer.bytes
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }
}
