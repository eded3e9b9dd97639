import FanfareCore

/// The store's contents as JSON, written by hand because payloads are inserted unchanged.
enum StoreJSON {
  /// `{"notifications":[…]}`, oldest first.
  static func notifications(_ notifications: [ReceivedNotification]) -> [UInt8] {
    var output: [UInt8] = []
    output.append(literal: #"{"notifications":["#)
    output.append(list: notifications) { $0.append(notification: $1) }
    output.append(literal: "]}")
    return output
  }

  /// One event of the stream of notifications (WHATWG HTML, server-sent events).
  static func event(_ notification: ReceivedNotification) -> [UInt8] {
    var output: [UInt8] = []
    output.append(literal: "event: notification\ndata: ")
    let start = output.count
    output.append(notification: notification)
    // A payload may contain line ends between its JSON tokens; an event's data may not.
    for index in start..<output.count where output[index] == 0x0A || output[index] == 0x0D { output[index] = 0x20 }
    output.append(literal: "\n\n")
    return output
  }

  /// `{"devices":[{"platform","handle","received"}…],"next":…}`, without `next` on the last page.
  static func devices(_ devices: [DeviceStore.Device], limit: Int) -> [UInt8] {
    var output: [UInt8] = []
    output.append(literal: #"{"devices":["#)
    output.append(list: devices) { output, device in
      output.append(literal: #"{"platform":"#)
      output.appendJSON(device.platform.rawValue)
      output.append(literal: #","handle":"#)
      output.appendJSON(device.handle)
      output.append(literal: #","received":"#)
      output.appendJSON(device.received)
      output.append(literal: "}")
    }
    output.append(literal: "]")
    if devices.count == limit, let last = devices.last {
      output.append(literal: #","next":"#)
      output.appendJSON("\(last.platform):\(last.handle)")
    }
    output.append(literal: "}")
    return output
  }

  /// `{"accepted","duplicates","devices","services":{NAME:{"accepted","duplicates","answers":{…}}}}`.
  static func counts(_ counts: SimulatorCounts) -> [UInt8] {
    var output: [UInt8] = []
    output.append(literal: #"{"accepted":"#)
    output.appendJSON(counts.accepted)
    output.append(literal: #","duplicates":"#)
    output.appendJSON(counts.duplicates)
    output.append(literal: #","devices":"#)
    output.appendJSON(counts.devices)
    output.append(literal: #","services":{"#)
    output.append(list: SimulatedService.allCases) { output, service in
      output.appendJSON(service.rawValue)
      output.append(literal: #":{"accepted":"#)
      output.appendJSON(counts[service].accepted)
      output.append(literal: #","duplicates":"#)
      output.appendJSON(counts[service].duplicates)
      output.append(literal: #","answers":{"#)
      output.append(list: counts[service].answers.sorted { $0.key < $1.key }) { output, answer in
        output.appendJSON(answer.key)
        output.append(literal: ":")
        output.appendJSON(answer.value)
      }
      output.append(literal: "}}")
    }
    output.append(literal: "}}")
    return output
  }

  /// `[{"platform","prefix","meaning"}…]`.
  static func prefixes() -> [UInt8] {
    var output: [UInt8] = []
    output.append(literal: "[")
    output.append(list: HandlePrefix.table) { output, entry in
      output.append(literal: #"{"platform":"#)
      output.appendJSON(entry.platform.rawValue)
      output.append(literal: #","prefix":"#)
      output.appendJSON(entry.prefix)
      output.append(literal: #","meaning":"#)
      output.appendJSON(entry.meaning)
      output.append(literal: "}")
    }
    output.append(literal: "]")
    return output
  }

  /// The URLs of all endpoints.
  static func endpoints(_ endpoints: SimulatorEndpoints, tenant: String) -> [UInt8] {
    let urls = [
      ("apns", "https://\(endpoints.authority):\(endpoints.apnsPort)"),
      ("fcm", "https://\(endpoints.authority):\(endpoints.fcmPort)"),
      ("googleToken", endpoints.googleTokenURL), ("wns", endpoints.wnsURL), ("liveToken", endpoints.liveTokenURL),
      ("entraToken", endpoints.entraTokenURL(tenant: tenant)), ("admin", endpoints.adminURL),
    ]
    var output: [UInt8] = []
    output.append(literal: "{")
    output.append(list: urls) { output, url in
      output.appendJSON(url.0)
      output.append(literal: ":")
      output.appendJSON(url.1)
    }
    output.append(literal: "}")
    return output
  }
}

extension [UInt8] {
  /// Appends the elements, separated by commas.
  fileprivate mutating func append<Item>(list: [Item], _ body: (inout [UInt8], Item) -> Void) {
    for (index, element) in list.enumerated() {
      if index > 0 { append(UInt8(ascii: ",")) }
      body(&self, element)
    }
  }

  /// Appends `{"platform","handle","time","pushId","headers":{…},"payload":…}`. A payload that is not JSON becomes a
  /// string.
  fileprivate mutating func append(notification: ReceivedNotification) {
    append(literal: #"{"platform":"#)
    appendJSON(notification.platform.rawValue)
    append(literal: #","handle":"#)
    appendJSON(notification.handle)
    append(literal: #","time":"#)
    appendJSON(notification.time)
    append(literal: #","pushId":"#)
    if let id = notification.pushID { appendJSON(id) } else { append(literal: "null") }
    append(literal: #","headers":{"#)
    append(list: notification.headers) { output, field in
      output.appendJSON(field.name.lowercased())
      output.append(literal: ":")
      output.appendJSON(field.value)
    }
    append(literal: #"},"payload":"#)
    if Self.isJSON(notification.payload) {
      append(contentsOf: notification.payload)
    } else {
      appendJSON(notification.text)
    }
    append(literal: "}")
  }

  private static func isJSON(_ bytes: [UInt8]) -> Bool {
    do {
      var reader = try JSONReader(bytes[...])
      try reader.skipValue()
      try reader.finish()
      return true
    } catch {
      return false
    }
  }
}
