package secret

import (
	"fmt"
	"strconv"
	"strings"
)

// A Stored is what a host stores of a secret: its generation, and the value if it is generated. The
// values of other secrets are not stored.
type Stored struct {
	Value      string `json:"value,omitempty"`
	Generation int    `json:"generation"`
}

// maxGeneration is the highest generation that is read. It is out of reach for a secret that is rotated
// every second.
const maxGeneration = 1 << 30

// ValidGeneration reports whether a number from another host may be the generation of a secret.
func ValidGeneration(n int) bool { return n >= 1 && n <= maxGeneration }

const generationLine = "generation "

// text returns the content of the file of a secret. In the first generation it is the value alone, as it
// was before secrets had generations.
func (s Stored) text() string {
	if s.Generation <= 1 {
		return s.Value
	}
	return fmt.Sprintf("%s\n%s%d\n", s.Value, generationLine, s.Generation)
}

func parseStored(text string) (Stored, error) {
	value, rest, more := strings.Cut(text, "\n")
	if !more {
		return Stored{value, 1}, nil
	}
	number, found := strings.CutPrefix(rest, generationLine)
	n, err := strconv.Atoi(strings.TrimSuffix(number, "\n"))
	if !found || err != nil || !ValidGeneration(n) {
		return Stored{}, fmt.Errorf("its second line is not %q and a number", strings.TrimSpace(generationLine))
	}
	return Stored{value, n}, nil
}
