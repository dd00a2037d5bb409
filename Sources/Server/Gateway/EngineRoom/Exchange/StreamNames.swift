package import Engine
package import Wire

/// Creates and checks the names of streams that workers receive. A name has the four numbers of a stream and a code,
/// which only the holder of a secret key can compute.
package struct StreamNames: Sendable {
    private let key: HashKey

    /// - Parameter key: a secret key of this process.
    package init(key: HashKey) {
        self.key = key
    }

    package func name(of stream: LoopStream) -> String {
        "\(stream.place)-\(self.seal(stream))"
    }

    /// Returns the stream with this name; nil if the name was not created with this key.
    package func stream(_ name: String) -> LoopStream? {
        let numbers = name.split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 5, let loop = UInt16(numbers[0]), let index = UInt32(numbers[1]),
            let generation = UInt32(numbers[2]), let number = Int32(numbers[3]), let seal = UInt64(numbers[4])
        else { return nil }
        let stream = LoopStream(loop: loop, connectionIndex: index, connectionGeneration: generation, number: number)
        return self.seal(stream) == seal ? stream : nil
    }

    /// Returns a code of all four numbers under the key.
    private func seal(_ stream: LoopStream) -> UInt64 {
        self.key.hash(
            UInt64(stream.loop) << 32 | UInt64(stream.connectionIndex),
            UInt64(stream.connectionGeneration) << 32 | UInt64(UInt32(bitPattern: stream.number))
        )
    }
}
