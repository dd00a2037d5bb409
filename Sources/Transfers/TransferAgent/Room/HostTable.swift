/// The servers that transfers are of, by scheme, name and port: a number for each, for as long as some transfer is of
/// it.
struct HostTable {
    private var numbers: [String: Int32] = [:]
    /// By number: the name, empty where the number is free, and how many transfers are of it.
    private var rows: [(name: String, transfers: Int)] = []
    private var free: [Int32] = []

    var count: Int { self.numbers.count }

    /// One more transfer is of a host.
    ///
    /// - Returns: the host's number, and whether it had none before.
    mutating func use(_ name: String) -> (number: Int32, isNew: Bool) {
        if let number = self.numbers[name] {
            self.rows[Int(number)].transfers += 1
            return (number, false)
        }
        let number = self.free.popLast() ?? Int32(self.rows.count)
        if Int(number) == self.rows.count {
            self.rows.append((name, 1))
        } else {
            self.rows[Int(number)] = (name, 1)
        }
        self.numbers[name] = number
        return (number, true)
    }

    /// A transfer of a host is there no more; after the last one the number may become another host's.
    mutating func leave(_ number: Int32) {
        self.rows[Int(number)].transfers -= 1
        guard self.rows[Int(number)].transfers == 0 else { return }
        self.numbers[self.rows[Int(number)].name] = nil
        self.rows[Int(number)].name = ""
        self.free.append(number)
    }
}
