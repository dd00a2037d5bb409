package import Engine
package import Wire

/// The names that workers are told of their streams: the four numbers of a stream, and a fifth that nobody can make who
/// does not have the key.
package struct StreamNames: Sendable {
    private let key: HashKey

    /// - Parameter key: a secret that no other process has.
    package init(key: HashKey) {
        self.key = key
    }

    package func name(of stream: LoopStream) -> String {
        "\(stream.place)-\(self.seal(stream))"
    }

    /// The stream with this name; nil when no name was made of it with this key.
    package func stream(_ name: String) -> LoopStream? {
        let numbers = name.split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 5, let loop = UInt16(numbers[0]), let index = UInt32(numbers[1]),
            let generation = UInt32(numbers[2]), let number = Int32(numbers[3]), let seal = UInt64(numbers[4])
        else { return nil }
        let stream = LoopStream(loop: loop, connectionIndex: index, connectionGeneration: generation, number: number)
        return self.seal(stream) == seal ? stream : nil
    }

    /// A code of all four numbers under the key.
    private func seal(_ stream: LoopStream) -> UInt64 {
        self.key.hash(
            UInt64(stream.loop) << 32 | UInt64(stream.connectionIndex),
            UInt64(stream.connectionGeneration) << 32 | UInt64(UInt32(bitPattern: stream.number))
        )
    }
}
