import FanfareCore
import Foundation
import GRDB
@testable import Ledger
import Operations
import Metrics
import RDKafka

func ms(_ d: Duration) -> Double { d / .milliseconds(1) }
do {
  let m = PrometheusMetrics()
  let c = Counter(label: "c_total", factory: m); let t = Metrics.Timer(label: "t_seconds", factory: m); let g = Gauge(label: "g", factory: m)
  let n = 20_000_000
  var d = ContinuousClock().measure { for _ in 0..<n { c.increment() } }; print("counter", d / n)
  d = ContinuousClock().measure { for i in 0..<n { t.recordNanoseconds(Int64(i)) } }; print("timer", d / n)
  d = ContinuousClock().measure { for i in 0..<n { g.record(i) } }; print("gauge", d / n)
  for i in 0..<2000 { Metrics.Timer(label: "x_seconds", dimensions: [("a","\(i)")], factory: m).recordSeconds(1) }
  d = ContinuousClock().measure { print(m.exposition().utf8.count) }; print("exposition", d)
}
let path = "/tmp/ledgerbench-\(getpid()).sqlite"
let store = try LedgerStore(LedgerStoreConfiguration(path: path))
let topics = Topics()
let total = Int(CommandLine.arguments.dropFirst().first ?? "400000")!
let batch = Int(CommandLine.arguments.dropFirst(2).first ?? "5000")!
let lagBatches = 1
let t0 = UnixTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
var accepts: [[ConsumedRecord]] = [], statuses: [[ConsumedRecord]] = []
var i = 0
while i < total {
  var a: [ConsumedRecord] = [], s: [ConsumedRecord] = []
  for j in i..<min(i + batch / 2, total) {
    let at = UnixTime(milliseconds: t0.milliseconds + Int64(j / 40))
    let id = SendID.timeOrdered(at: at)
    let send = SendRequest(id: id, sender: "alice", acceptedAt: at, audience: .user("bob\(j % 10000)"), content: Content(message: Message(body: "From alice: hello")))
    a.append(ConsumedRecord(topic: topics.sends, partition: 0, offset: Int64(j), timestamp: at.milliseconds, key: nil, value: send.encoded()[...]))
    let st = StatusRecord(send: id, hub: .default, state: .settled, sender: "alice", audience: send.audience, acceptedAt: at, settledAt: at + .milliseconds(20), devices: [DeviceResult(registration: .random(), platform: .apns, outcome: .delivered, reason: "", status: 200, attempts: 1)])
    s.append(ConsumedRecord(topic: topics.status, partition: 0, offset: Int64(j), timestamp: at.milliseconds, key: nil, value: st.encoded()[...]))
  }
  accepts.append(a); statuses.append(s); i += batch / 2
}
var decode = Duration.zero, write = Duration.zero
let whole = ContinuousClock.now
for k in 0..<(accepts.count + lagBatches) {
  var x = ContinuousClock.now
  var b = LedgerBatch()
  if k < accepts.count { b = LedgerBatch(accepts[k], topics: topics, maximumDevices: 100) }
  if k >= lagBatches { b.append(LedgerBatch(statuses[k - lagBatches], topics: topics, maximumDevices: 100)) }
  decode += .now - x
  x = .now
  _ = try await store.write(b)
  write += .now - x
}
let all = ContinuousClock.now - whole
print("sends", total, "batch", batch, "decode µs/send", ms(decode) * 1000 / Double(total), "write µs/send", ms(write) * 1000 / Double(total), "sends/s serial", Double(total) / (all / .seconds(1)), "pipelined ≈", Double(total) / (max(write, decode) / .seconds(1)))
print(try await store.totals(hub: .default))
let x = ContinuousClock.now
let one = try SendID("\(StatusRecord.decode(statuses[3][7].value).send)")!
for _ in 0..<1000 { _ = try await store.report(of: one, hub: .default) }
print("lookup", (ContinuousClock.now - x) / 1000)
print("bytes/send", Double((try FileManager.default.attributesOfItem(atPath: path)[.size] as! NSNumber).intValue) / Double(total))
for s in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + s) }
