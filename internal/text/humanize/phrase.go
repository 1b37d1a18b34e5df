// Package humanize formats numbers, lists and times for messages.
package humanize

import (
	"fmt"
	"time"
)

// Plural returns a number with a noun in the singular or plural.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// List joins at most some number of words and adds the number of the others.
func List[T string | int](words []T, most int) string {
	text := ""
	for i, w := range words {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(words)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(w)
	}
	return text
}

// Time returns a local time: with seconds if it is within half a day, otherwise with the date.
func Time(t time.Time) string {
	if time.Since(t).Abs() > 12*time.Hour {
		return t.Local().Format("2006-01-02 15:04")
	}
	return t.Local().Format("15:04:05")
}

// Bytes returns a rounded number of bytes with a unit.
func Bytes(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/1024, 0
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}
