package sitefile

import (
	"strings"

	"gopkg.in/ini.v1"

	"orrery/internal/text/pattern"
)

// maxValue limits the bytes of a value after substitution, because values may refer to others
// recursively.
const maxValue = 64 << 10

var iniReference = pattern.New(`%\(([^)]+)\)s`)

// iniValue returns the value of a key with references substituted, as Python's ConfigParser does. A
// reference %(other)s is the value of another key in the section or in [DEFAULT]. iniValue returns
// false if the values refer to each other endlessly or the result is too long. The library's own
// substitution checks neither.
func iniValue(s, defaults *ini.Section, k *ini.Key) (string, bool) {
	text := k.Value()
	for range 99 {
		m := iniReference().FindStringSubmatch(text)
		if m == nil {
			return text, true
		}
		other, err := s.GetKey(m[1])
		if err != nil || other == k {
			if other, err = defaults.GetKey(m[1]); err != nil {
				return text, true
			}
		}
		if text = strings.ReplaceAll(text, m[0], other.Value()); len(text) > maxValue {
			return "", false
		}
	}
	return "", false
}
