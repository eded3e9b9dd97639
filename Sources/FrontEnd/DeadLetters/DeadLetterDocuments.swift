import FanfareCore

extension LogPlace {
  /// The id of a letter in the API: `partition-offset`.
  var id: String { "\(partition)-\(offset)" }

  init?(id: some StringProtocol) { self.init(id, separator: "-") }
}

extension DeadLetterPosition {
  /// The position as a cursor: `partition-offset` for each partition, with `_` between them.
  var cursor: String {
    offsets.sorted { $0.key < $1.key }.map { LogPlace(partition: $0.key, offset: $0.value).id }.joined(separator: "_")
  }

  init?(cursor: String) {
    var offsets: [Int32: Int64] = [:]
    for part in cursor.split(separator: "_", omittingEmptySubsequences: false) {
      guard let place = LogPlace(id: part) else { return nil }
      offsets[place.partition] = place.offset
    }
    self.init(offsets)
  }
}

extension DeadLetterPage {
  /// Returns the page as JSON with `letters`, `next`, and `counts` if the caller wants them.
  func json(hasCounts: Bool) -> [UInt8] {
    JSONWriter.object(capacity: 64 + letters.count * 320) {
      $0.array("letters", letters) { json, letter in json.object { letter.write(to: &$0) } }
      if hasCounts {
        $0.object("counts") {
          for reason in DeadLetter.Reason.allCases { $0.member(named: reason.rawValue, counts[reason] ?? 0) }
        }
        $0.member("countsAll", countsAll)
      }
      $0.member("next", next?.cursor)
    }
  }
}

extension LetterSummary {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("id", place.id)
    json.member("at", at)
    json.member("reason", reason)
    json.member("detail", detail)
    json.object("origin") {
      $0.member("topic", origin.topic)
      $0.member("partition", origin.partition)
      $0.member("offset", origin.offset)
    }
    json.member("valueSize", valueSize)
    json.member("isWhole", isWhole)
    json.member("send", send)
  }
}

extension DeadLetter {
  /// The most devices of a deferred record that are listed.
  private static let mostDevices = 200

  /// Returns the letter as JSON: the members of a list's entry, and `record`, null if the record cannot be read.
  /// Content, handles and the record's key are left out.
  func json(at place: LogPlace) -> [UInt8] {
    JSONWriter.object(capacity: 1024) {
      LetterSummary(self, at: place).write(to: &$0)
      guard let record = decodedRecord() else { return $0.member("record", String?.none) }
      $0.object("record") { Self.write(record, to: &$0) }
    }
  }

  private static func write(_ record: Record, to json: inout JSONWriter) {
    let send = record.send
    json.member("hub", send.hub)
    json.member("sender", send.sender)
    json.member("to", send.audience.text)
    json.member("platforms", Platform.allCases.filter { send.coveredPlatforms.contains($0) })
    json.member("acceptedAt", send.acceptedAt)
    json.member("replay", send.replay)
    switch record {
    case .send: break
    case .segment(let segment):
      json.object("pages") {
        $0.member("first", segment.range.lowerBound)
        $0.member("count", segment.range.count)
        $0.member("ofBroadcast", segment.pages)
      }
    case .rest(let rest):
      json.member("part", rest.part)
      json.member("parts", rest.parts)
      json.member("deferrals", rest.deferrals)
      json.array("devices", rest.devices.prefix(mostDevices)) { json, device in
        json.object {
          switch device {
          case .done(let result):
            $0.member("registration", result.registration)
            $0.member("platform", result.platform)
            $0.member("outcome", result.outcome.rawValue)
            $0.member("reason", result.reason)
            $0.member("status", result.status)
            $0.member("attempts", result.attempts)
          case .waiting(let device):
            $0.member("registration", device.registration)
            $0.member("platform", device.platform)
            $0.member("outcome", String?.none)
            $0.member("reason", device.reason)
            $0.member("status", device.status)
            $0.member("attempts", device.attempts)
          }
        }
      }
    }
  }
}

extension RedriveOutcome {
  /// Returns the outcome as JSON; `missing` has the selected ids without a letter in the caller's hub.
  func json(of order: RedriveOrder) -> [UInt8] {
    JSONWriter.object {
      $0.member("dryRun", order.isDryRun)
      $0.member("redriven", redriven)
      $0.member("redrivenBefore", redrivenBefore)
      $0.member("cut", cut.map(\.id))
      $0.member("foreign", foreign.map(\.id))
      if case .places(let places) = order.selection {
        let asked = places.filter { order.after?.offsets[$0.partition] ?? 0 <= $0.offset }
        $0.member("missing", asked.subtracting(found).sorted().map(\.id))
      }
      $0.member("isComplete", next == nil)
      $0.member("next", next?.cursor)
    }
  }
}
