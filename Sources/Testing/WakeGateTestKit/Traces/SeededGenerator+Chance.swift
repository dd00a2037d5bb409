extension SeededGenerator {
    /// True `percent` times in a hundred, on average.
    package mutating func chance(_ percent: Int) -> Bool {
        self.number(below: 100) < percent
    }
}
