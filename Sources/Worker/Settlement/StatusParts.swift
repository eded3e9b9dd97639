/// How the results of one send are spread over status records, each of which must stay well below the largest message
/// Kafka takes.
struct StatusParts {
  private let devices: Int
  private let limit: Int

  /// So many devices, of which a record is to have at most `limit`.
  init(devices: Int, limit: Int) {
    self.devices = devices
    self.limit = limit
  }

  /// How many records there are; one, perhaps without a device, where they fit.
  var count: Int { devices <= limit ? 1 : (devices - 1) / limit + 1 }

  /// Which of the devices are in the record of that number.
  subscript(number: Int) -> Range<Int> {
    let first = number * limit
    return first..<(first + min(limit, devices - first))
  }
}
