/// A row of bars, one a value.
package enum Sparkline {
    private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// The last `width` values as bars, the greatest of them the highest; those that are missing are spaces.
    ///
    /// - `most`: what the highest bar stands for; nil for the greatest value.
    package static func text(_ values: [Double?], width: Int, most: Double? = nil) -> String {
        let shown = values.suffix(max(0, width))
        let highest = most ?? shown.compactMap(\.self).max() ?? 0
        let text = shown.map { value -> Character in
            guard let value else { return " " }
            guard highest > 0, value > 0 else { return self.bars[0] }
            let height = Int(saturating: value / highest * Double(self.bars.count - 1) + 0.5)
            return self.bars[min(self.bars.count - 1, height)]
        }
        return String(repeating: " ", count: max(0, width - text.count)) + String(text)
    }
}
