package sitefile

import (
	"strings"

	"gopkg.in/ini.v1"

	"orrery/internal/text/pattern"
)

// maxValue bounds a value of a host database, in bytes: values may name others, and those others.
const maxValue = 64 << 10

var iniReference = pattern.New(`%\(([^)]+)\)s`)

// iniValue returns the value of a key as Python's ConfigParser does: %(other)s in it is the value
// of another key of the section, or of [DEFAULT]. The library goes in circles where values name one
// another, and makes texts of any length.
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
