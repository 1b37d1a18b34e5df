package sitefile

import (
	"fmt"
	"reflect"
	"strconv"

	"orrery/internal/problem"
)

func (d *decoder) scalar(name string, value any, at *place, into reflect.Value) {
	given := reflect.ValueOf(value)
	switch kind := into.Kind(); {
	case kind == reflect.String && given.Kind() == reflect.String && given.Len() > d.longest:
		d.wrong(at, problem.New(problem.Mistake, "%s has more than %d characters", name, d.longest).Try("put it into a file of a role"))
	case kind == reflect.String && given.Kind() == reflect.String:
		into.SetString(given.String())
	case kind == reflect.Bool && given.Kind() == reflect.Bool:
		into.SetBool(given.Bool())
	case kind == reflect.Int && given.Kind() == reflect.Int64:
		into.SetInt(given.Int())
	case kind == reflect.Float64 && given.Kind() == reflect.Int64:
		into.SetFloat(float64(given.Int()))
	case kind == reflect.Float64 && given.Kind() == reflect.Float64:
		into.SetFloat(given.Float())
	default:
		d.mismatch(name, wanted[kind], value, at)
	}
}

var wanted = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Float64: "a number",
}

func (d *decoder) mismatch(name, want string, value any, at *place) {
	p := problem.New(problem.Mistake, "%s must be %s, not %s", name, want, say(value))
	switch s, isString := value.(string); {
	case want == "a string":
		switch value.(type) {
		case int64, float64, bool:
			p.Try("put it in quotation marks: \"%v\"", value)
		}
	case want == "a list" && isString:
		p.Try("write %s = [%q]", name, s)
	case isString && plain(s, want):
		p.Try("write it without quotation marks: %s", s)
	}
	d.wrong(at, p)
}

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
