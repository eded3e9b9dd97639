import FanfareCore

extension Message {
  /// The data in the order of its keys, so that one message always renders to the same bytes.
  var sortedData: [(key: String, value: String)] {
    data.count > 1 ? data.sorted { $0.key < $1.key } : Array(data)
  }
}
