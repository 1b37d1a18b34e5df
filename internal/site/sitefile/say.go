package sitefile

import (
	"fmt"
	"strconv"
)

// say names a value of a TOML file in a message.
func say(value any) string {
	switch v := value.(type) {
	case string:
		if len(v) > 60 {
			v = v[:60] + "…"
		}
		return strconv.Quote(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case nil:
		return "nothing"
	}
	return fmt.Sprint(value)
}

// plain reports whether text, without its quotation marks, would be what is wanted.
func plain(text, want string) bool {
	switch want {
	case "true or false":
		return text == "true" || text == "false"
	case "a whole number":
		_, err := strconv.Atoi(text)
		return err == nil
	case "a number":
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	}
	return false
}
