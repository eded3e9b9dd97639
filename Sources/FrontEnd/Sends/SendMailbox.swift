import FanfareCore
import HTTPServer
import HTTPTypes
import Metrics
import NIOCore
import RDKafka
import Synchronization

/// Produces sends whose requests wait for nothing but Kafka's acknowledgement, and answers these without a task.
///
/// The sends that arrive in one turn of an event loop are produced together, and the loop is woken once for all results
/// that wait.
final class SendMailbox: Sendable {
  /// A send that is admitted, and its request.
  private struct Entry: Sendable {
    let send: AcceptedSend
    let prepared: PreparedSend
    let slot: AnswerSlot
    let requestID: String
    let pattern: String?
    let start: ContinuousClock.Instant
  }

  /// Sends that are produced together.
  private final class Batch: Sendable {
    let entries: [Entry]
    let start = ContinuousClock.now

    init(_ entries: [Entry]) { self.entries = entries }
  }

  private struct Delivery {
    let batch: Batch
    let index: Int
    let result: SendResult
  }

  private let intake: SendIntake
  private let desk: AnswerDesk
  private let eventLoop: any EventLoop
  /// Records and the requests that they are of, in the same order.
  private let arriving: NIOLoopBoundBox<(entries: [Entry], records: [ProducerRecord])>
  private let delivered = Mutex<[Delivery]>([])
  /// The timer of the last accepted send: nearly all are of one route.
  private let latest: NIOLoopBoundBox<(pattern: String?, status: HTTPResponse.Status, timer: Timer)?>

  /// Call it on the event loop.
  fileprivate init(_ intake: SendIntake, _ desk: AnswerDesk, _ eventLoop: any EventLoop) {
    (self.intake, self.desk, self.eventLoop) = (intake, desk, eventLoop)
    arriving = NIOLoopBoundBox(([], []), eventLoop: eventLoop)
    latest = NIOLoopBoundBox(nil, eventLoop: eventLoop)
  }

  /// Takes a send and its request, if the request has a slot and the sender's quotas allow the send without the database.
  /// Otherwise returns false, and has taken nothing from them. Throws a refusal of the send. Call it on the event loop.
  func take(
    _ submission: Submission, of exchange: Exchange, by caller: Caller, state: SendReport.State?
  ) throws(Refusal) -> Bool {
    guard let slot = exchange.slot, let (prepared, record) = try intake.prepare(submission, into: caller.hub)
    else { return false }
    arriving.value.records.append(record)
    arriving.value.entries.append(
      Entry(
        send: AcceptedSend(id: submission.send.id, hub: caller.hub, state: state), prepared: prepared, slot: slot,
        requestID: exchange.id, pattern: exchange.pattern, start: exchange.start))
    // Runs after everything that has been read in this turn.
    if arriving.value.records.count == 1 { eventLoop.execute { self.submit() } }
    return true
  }

  private func submit() {
    let (entries, records) = arriving.value
    arriving.value = ([], [])
    let batch = Batch(entries)
    intake.sink.submit(records) { index, result in
      self.post(Delivery(batch: batch, index: index, result: result))
    }
  }

  private func post(_ delivery: Delivery) {
    let isFirst = delivered.withLock { delivered in
      delivered.append(delivery)
      return delivered.count == 1
    }
    if isFirst { eventLoop.execute { self.answer() } }
  }

  private func answer() {
    let deliveries = delivered.withLock { delivered in
      var taken: [Delivery] = []
      taken.reserveCapacity(delivered.count)
      swap(&taken, &delivered)
      return taken
    }
    for delivery in deliveries {
      settle(delivery.batch.entries[delivery.index], delivery.result, since: delivery.batch.start)
    }
    for delivery in deliveries { delivery.batch.entries[delivery.index].slot.flush() }
  }

  private func settle(_ entry: Entry, _ result: SendResult, since start: ContinuousClock.Instant) {
    let hub = entry.send.hub
    let status = entry.send.status
    do throws(Refusal) {
      try intake.finish(entry.prepared, result, into: hub, since: start)
      entry.slot.answer(entry.send.brief(requestID: entry.requestID, date: desk.date))
      timer(entry.pattern, status).record(duration: .now - entry.start)
    } catch {
      hub.metrics.refuse(error.code)
      var answer = desk.answer(to: error, causedBy: error, requestID: entry.requestID)
      desk.complete(&answer, requestID: entry.requestID)
      entry.slot.answer(answer)
      desk.metrics.record(.now - entry.start, method: .post, route: entry.pattern, status: error.status)
    }
  }

  private func timer(_ pattern: String?, _ status: HTTPResponse.Status) -> Timer {
    if let latest = latest.value, latest.pattern == pattern, latest.status == status { return latest.timer }
    let timer = desk.metrics.timer(method: .post, route: pattern, status: status)
    latest.value = (pattern, status, timer)
    return timer
  }
}

/// The mailboxes of all event loops.
final class SendMailboxes: Sendable {
  private let intake: SendIntake
  private let desk: AnswerDesk
  private let mailboxes = Mutex<[ObjectIdentifier: SendMailbox]>([:])

  init(_ intake: SendIntake, _ desk: AnswerDesk) { (self.intake, self.desk) = (intake, desk) }

  /// The mailbox of an event loop. Call it on the loop.
  func mailbox(of eventLoop: any EventLoop) -> SendMailbox {
    mailboxes.withLock { mailboxes in
      let key = ObjectIdentifier(eventLoop)
      let mailbox = mailboxes[key] ?? SendMailbox(intake, desk, eventLoop)
      mailboxes[key] = mailbox
      return mailbox
    }
  }
}
