import WakeDispatch

/// A stream as its worker is told of it: four numbers, and a fifth that nobody else can guess.
extension StreamAddress {
    package var name: String { "\(self.place)-\(self.seal)" }

    /// The first four numbers, which tell one stream from the others and are no proof of anything.
    var place: String {
        "\(self.loop)-\(self.connectionIndex)-\(self.connectionGeneration)-\(self.stream)"
    }

    /// The address that `name` spells; nil when this process never told it to anybody.
    package init?(name: String) {
        let numbers = name.split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 5, let loop = UInt32(numbers[0]), let index = UInt32(numbers[1]),
            let generation = UInt32(numbers[2]), let stream = Int32(numbers[3]), let seal = UInt(numbers[4])
        else { return nil }
        self.init(loop: loop, connectionIndex: index, connectionGeneration: generation, stream: stream)
        guard self.seal == seal else { return nil }
    }

    /// Hash values are SipHash under a key that each process draws at its start, so they serve as a short proof that
    /// a name was told by this process.
    private var seal: UInt { UInt(bitPattern: self.hashValue) }
}
