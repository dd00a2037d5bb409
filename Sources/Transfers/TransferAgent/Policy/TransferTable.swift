/// Transfers by their ids: rows side by side, and a small index, as there are many.
struct TransferTable {
    private var places: [TransferID: Int32] = [:]
    private var rows: [Transfer?] = []
    private var free: [Int32] = []

    var count: Int { self.places.count }

    /// Every transfer, in no order.
    var values: some Sequence<Transfer> { self.rows.lazy.compactMap(\.self) }

    subscript(id: TransferID) -> Transfer? {
        get { self.places[id].flatMap { self.rows[Int($0)] } }
        set {
            if let place = self.places[id] {
                self.rows[Int(place)] = newValue
                guard newValue == nil else { return }
                self.places[id] = nil
                self.free.append(place)
            } else if let newValue {
                let place = self.free.popLast() ?? Int32(self.rows.count)
                if Int(place) == self.rows.count {
                    self.rows.append(newValue)
                } else {
                    self.rows[Int(place)] = newValue
                }
                self.places[id] = place
            }
        }
    }
}
