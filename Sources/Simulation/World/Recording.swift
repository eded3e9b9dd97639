package import FanfareCore
import RDKafka
import Worker

/// The events of one run, kept for the page that replays it.
///
/// Its data is in columns of numbers: names and ids are listed once. Of a long run a sample is kept: some of the sends
/// and pushes, with all their events, and those that violations name.
///
/// `@unchecked Sendable`: see `World`.
package final class Recording: @unchecked Sendable {
  private struct Entry {
    let time: World.Time
    let kind: Trace.Event.Kind
    /// Numbers, and places in the lists of words and ids.
    let fields: SIMD4<Int32>

    /// The place of the send or push in its list; nil: the sentence has none.
    func place(of name: String) -> Int32? { kind.fieldNames.firstIndex(of: name).map { fields[$0] } }
  }

  /// A list of different values.
  private struct List<Value: Hashable> {
    private(set) var values: [Value] = []
    private var places: [Value: Int32] = [:]

    /// The place of a value that is in the list.
    func known(_ value: Value) -> Int32? { places[value] }

    mutating func place(of value: Value) -> Int32 {
      if let place = places[value] { return place }
      let place = Int32(values.count)
      values.append(value)
      places[value] = place
      return place
    }
  }

  /// How far a partition's log reaches, and up to where its group has committed it.
  private struct Log {
    let second: Int64
    var end: Int32 = 0
    var committed: Int32 = 0
  }

  private struct Sample {
    let tick: Int64
    let process: Int32
    /// Pairs of a word and a count.
    let values: [Int32]
  }

  /// The kinds whose events are counted for each second, by their first field.
  private struct Rate: Hashable {
    let kind: Trace.Event.Kind
    let part: Int32
  }

  /// How many events of sends, of pushes and of commits the page has at most, without those that violations name.
  private let limit: Int
  private var entries: [Entry] = []
  private var words = List<String>()
  private var sends = List<SendID>()
  private var pushes = List<PushID>()
  private var logs: [Int32: [Log]] = [:]
  private var rates: [Rate: [Int32]] = [:]
  private var samples: [Sample] = []
  private var sampled: [String: Int64] = [:]

  package init(limit: Int = 80_000) {
    self.limit = limit
  }

  // Recording.

  func add(_ time: World.Time, _ event: Trace.Event) {
    var fields = SIMD4<Int32>()
    for (index, field) in event.fields.enumerated() {
      fields[index] =
        switch field {
        case .part(let text), .text(let text): words.place(of: text)
        case .partition(let partition): words.place(of: partition.description)
        case .send(let id): sends.place(of: id)
        case .push(let id): pushes.place(of: id)
        case .number(let number): Int32(clamping: number)
        }
    }
    entries.append(Entry(time: time, kind: event.kind, fields: fields))
    let second = time / 1_000_000
    switch event.kind {
    case .carried, .deferred, .returned, .divided: change(fields[1], second) { $0.end = fields[2] + 1 }
    case .committed: change(fields[1], second) { $0.committed = fields[2] }
    case .pushed, .delivered:
      let rate = Rate(kind: event.kind, part: fields[0])
      let missing = Int(second) + 1 - rates[rate, default: []].count
      if missing > 0 { rates[rate, default: []] += Array(repeating: 0, count: missing) }
      rates[rate]?[Int(second)] += 1
    default: break
    }
  }

  private func change(_ partition: Int32, _ second: Int64, _ change: (inout Log) -> Void) {
    var log = logs[partition]?.last ?? Log(second: second)
    if log.second == second {
      _ = logs[partition]?.popLast()
    } else {
      log = Log(second: second, end: log.end, committed: log.committed)
    }
    change(&log)
    logs[partition, default: []].append(log)
  }

  /// The interval between two samples of the load of a process.
  private static let tick: World.Time = .milliseconds(250)

  /// Keeps a sample of the load of a process, at most one in each interval.
  func sample(_ time: World.Time, _ process: String, _ load: () -> WorkerLoad) {
    let tick = time / Self.tick
    guard sampled[process] != tick else { return }
    sampled[process] = tick
    let load = load()
    var values: [Int32] = []
    func add(_ name: String, _ count: Int) {
      if count > 0 { values += [words.place(of: name), Int32(clamping: count)] }
    }
    for (phase, count) in load.items.sorted(by: { $0.key < $1.key }) { add("items/\(phase)", count) }
    for (platform, phases) in load.pushes.sorted(by: { $0.key < $1.key }) {
      for (phase, count) in phases.sorted(by: { $0.key < $1.key }) { add("\(platform)/\(phase)", count) }
    }
    for platform in load.stopped { add("\(platform)/stopped", 1) }
    add("bytes", load.bytes)
    samples.append(Sample(tick: tick, process: words.place(of: process), values: values))
  }

  // The page's data.

  /// The data as JSON. `about` writes further members.
  package func json(_ about: (inout JSONWriter) -> Void) -> [UInt8] {
    let (kept, share) = sampledEntries()
    let last = entries.last?.time ?? 0
    // A long run has fewer moments at which counts are known.
    let interval = max(1, last / 600_000_000)
    return JSONWriter.object(capacity: kept.count * 24) { json in
      about(&json)
      json.member("interval", interval)
      json.member("until", last)
      json.object("share") { json in
        for (subject, share) in share { json.member(named: subject.rawValue, Int64(clamping: share)) }
      }
      writeEvents(kept, to: &json)
      json.object("samples") { json in
        let samples = samples.filter { $0.tick % interval == 0 }
        json.member("every", Self.tick)
        json.array("tick", samples) { $1.tick.write(to: &$0) }
        json.array("process", samples) { $1.process.write(to: &$0) }
        json.array("values", samples) { json, sample in
          json.array { json in for value in sample.values { json.element(value) } }
        }
      }
      json.array("logs", logs.sorted { words.values[Int($0.key)] < words.values[Int($1.key)] }) { json, log in
        json.object { json in
          json.member("partition", log.key)
          json.array("second", log.value) { $1.second.write(to: &$0) }
          json.array("end", log.value) { $1.end.write(to: &$0) }
          json.array("committed", log.value) { $1.committed.write(to: &$0) }
        }
      }
      json.array("rates", rates.sorted { ($0.key.kind.rawValue, $0.key.part) < ($1.key.kind.rawValue, $1.key.part) }) {
        json, rate in
        json.object { json in
          json.member("kind", rate.key.kind.rawValue)
          json.member("part", rate.key.part)
          json.array("counts", stride(from: 0, to: rate.value.count, by: Int(interval))) { json, start in
            rate.value[start..<min(rate.value.count, start + Int(interval))].reduce(0, +).write(to: &json)
          }
        }
      }
      json.array("words", words.values) { $1.write(to: &$0) }
    }
  }

  /// Events in columns: the time since the event before, the kind, and as many fields as the kind's sentence has.
  private func writeEvents(_ kept: [Entry], to json: inout JSONWriter) {
    // Only ids that are left are listed.
    var (sends, pushes) = (List<SendID>(), List<PushID>())
    var fields: [Int32] = []
    for entry in kept {
      for (index, name) in entry.kind.fieldNames.enumerated() {
        let value = entry.fields[index]
        switch name {
        case "send": fields.append(sends.place(of: self.sends.values[Int(value)]))
        case "push": fields.append(pushes.place(of: self.pushes.values[Int(value)]))
        default: fields.append(value)
        }
      }
    }
    json.array("kinds", Trace.Event.Kind.allCases) { json, kind in
      json.object { json in
        json.member("name", "\(kind)")
        json.member("sentence", kind.sentence)
      }
    }
    json.array("sends", sends.values) { "\($1)".write(to: &$0) }
    json.array("pushes", pushes.values) { "\($1)".write(to: &$0) }
    json.object("events") { json in
      var before: World.Time = 0
      json.array("time", kept) { json, entry in
        (entry.time - before).write(to: &json)
        before = entry.time
      }
      json.array("kind", kept) { $1.kind.rawValue.write(to: &$0) }
      json.array("fields", fields) { $1.write(to: &$0) }
    }
  }

  // The sample.

  /// The subjects of which a part is kept where there are too many events.
  private enum Subject: String, CaseIterable { case sends, pushes, commits }

  /// The subject of an event that need not be kept, and a number by which it is chosen.
  private struct Mark {
    let subject: Subject
    let number: UInt64
  }

  /// The events that are kept: of each subject one in `share`.
  private func sampledEntries() -> (entries: [Entry], share: KeyValuePairs<Subject, UInt64>) {
    let named = named()
    let marks = entries.map { mark($0, named) }
    func share(of subject: Subject) -> UInt64 {
      var share: UInt64 = 1
      while marks.lazy.filter({ $0?.subject == subject && $0?.number.isMultiple(of: share) == true }).count > limit {
        share *= 2
      }
      return share
    }
    let (ofSends, ofPushes, ofCommits) = (share(of: .sends), share(of: .pushes), share(of: .commits))
    let kept = zip(entries, marks).filter { _, mark in
      switch mark?.subject {
      case nil: true
      case .sends: mark?.number.isMultiple(of: ofSends) == true
      case .pushes: mark?.number.isMultiple(of: ofPushes) == true
      case .commits: mark?.number.isMultiple(of: ofCommits) == true
      }
    }
    return (kept.map(\.0), [.sends: ofSends, .pushes: ofPushes, .commits: ofCommits])
  }

  private func mark(_ entry: Entry, _ named: (sends: Set<Int32>, pushes: Set<Int32>)) -> Mark? {
    if let place = entry.place(of: "push") {
      return named.pushes.contains(place) ? nil : Mark(subject: .pushes, number: pushes.values[Int(place)].low)
    }
    if let place = entry.place(of: "send") {
      return named.sends.contains(place) ? nil : Mark(subject: .sends, number: sends.values[Int(place)].low)
    }
    return entry.kind == .committed ? Mark(subject: .commits, number: UInt64(entry.time)) : nil
  }

  /// The sends and pushes that violations name, and the pushes of these sends.
  private func named() -> (sends: Set<Int32>, pushes: Set<Int32>) {
    var (sends, pushes): (Set<Int32>, Set<Int32>) = ([], [])
    for entry in entries where entry.kind == .violation {
      for word in words.values[Int(entry.fields[0])].split(whereSeparator: { !$0.isHexDigit && $0 != "-" }) {
        if let place = SendID(String(word)).flatMap(self.sends.known) { sends.insert(place) }
        if let place = PushID(String(word)).flatMap(self.pushes.known) { pushes.insert(place) }
      }
    }
    for entry in entries where entry.kind == .pushed && pushes.count < limit {
      if let send = entry.place(of: "send"), sends.contains(send), let push = entry.place(of: "push") {
        pushes.insert(push)
      }
    }
    return (sends, pushes)
  }
}
