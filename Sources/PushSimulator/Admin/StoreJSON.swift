package import FanfareCore

/// The documents of the admin routes.
enum StoreJSON {
  /// `{"notifications":[…]}`, oldest first.
  static func notifications(_ notifications: [ReceivedNotification]) -> [UInt8] {
    JSONWriter.object { $0.member("notifications", notifications) }
  }

  /// One event of the stream of notifications (WHATWG HTML, server-sent events).
  static func event(_ notification: ReceivedNotification) -> [UInt8] {
    // A payload may contain line ends between its JSON tokens; an event's data may not.
    let data = JSONWriter.bytes(of: notification).map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
    return Array("event: notification\ndata: ".utf8) + data + Array("\n\n".utf8)
  }

  /// `{"devices":[{"platform","handle","received"}…],"next":…}`, without `next` on the last page.
  static func devices(_ devices: [DeviceStore.Device], limit: Int) -> [UInt8] {
    JSONWriter.object { json in
      json.member("devices", devices)
      if devices.count == limit, let last = devices.last { json.member("next", "\(last.platform):\(last.handle)") }
    }
  }

  /// `{"accepted","duplicates","devices","services":{NAME:{"accepted","duplicates","answers":{…}}}}`.
  static func counts(_ counts: SimulatorCounts) -> [UInt8] {
    JSONWriter.object { json in
      json.member("accepted", counts.accepted)
      json.member("duplicates", counts.duplicates)
      json.member("devices", counts.devices)
      json.object("services") { json in
        for service in SimulatedService.allCases {
          json.object(named: service.rawValue) { json in
            json.member("accepted", counts[service].accepted)
            json.member("duplicates", counts[service].duplicates)
            json.object("answers") { json in
              for answer in counts[service].answers.sorted(by: { $0.key < $1.key }) {
                json.member(named: answer.key, answer.value)
              }
            }
          }
        }
      }
    }
  }

  /// `[{"platform","prefix","meaning"}…]`.
  static func prefixes() -> [UInt8] { JSONWriter.bytes(of: HandlePrefix.table) }

  /// The URLs of all endpoints.
  static func endpoints(_ endpoints: SimulatorEndpoints, tenant: String) -> [UInt8] {
    JSONWriter.object { json in
      json.member("apns", "https://\(endpoints.authority):\(endpoints.apnsPort)")
      json.member("fcm", "https://\(endpoints.authority):\(endpoints.fcmPort)")
      json.member("googleToken", endpoints.googleTokenURL)
      json.member("wns", endpoints.wnsURL)
      json.member("liveToken", endpoints.liveTokenURL)
      json.member("entraToken", endpoints.entraTokenURL(tenant: tenant))
      json.member("admin", endpoints.adminURL)
    }
  }
}

extension DeviceStore.Device: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("platform", platform)
      json.member("handle", handle)
      json.member("received", received)
    }
  }
}

extension HandlePrefix: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("platform", platform)
      json.member("prefix", prefix)
      json.member("meaning", meaning)
    }
  }
}

/// `{"platform","handle","time","pushId","headers":{…},"payload":…}`. A payload that is not JSON becomes a string.
extension ReceivedNotification: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("platform", platform)
      json.member("handle", handle)
      json.member("time", time)
      json.member("pushId", pushID)
      json.object("headers") { json in
        for field in headers { json.member(named: field.name.lowercased(), field.value) }
      }
      if hasJSONPayload { json.member("payload", json: payload) } else { json.member("payload", text) }
    }
  }

  private var hasJSONPayload: Bool {
    do {
      var reader = try JSONReader(payload[...])
      try reader.skipValue()
      try reader.finish()
      return true
    } catch {
      return false
    }
  }
}
