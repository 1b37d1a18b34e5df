package command

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

func (f *figure) check(wrong test.MistakeFunc) {
	if strings.TrimSpace(f.Name) == "" {
		wrong("write name = \"…\" for each", "figures: a figure has no name")
	}
	if f.Unit == "" {
		wrong(`write "s", "bit/s", "1/s" or, for a ratio, "1"`, "figures: %q has no unit", f.Name)
	}
	switch f.Better {
	case string(test.More), string(test.Less), string(test.Neither):
	case "":
		f.Better = string(test.Neither)
	default:
		wrong(`write "more", "less" or "neither"`, "figures: %q: better = %q", f.Name, f.Better)
	}
	switch f.Copies {
	case string(test.Sum), string(test.Mean):
	case "":
		f.Copies = string(test.Mean)
		if strings.HasSuffix(f.Unit, "/s") {
			f.Copies = string(test.Sum)
		}
	default:
		wrong(`write "sum" or "mean"`, "figures: %q: copies = %q", f.Name, f.Copies)
	}
	if f.Factor != nil && (*f.Factor == 0 || math.IsNaN(*f.Factor) || math.IsInf(*f.Factor, 0)) {
		wrong("write a positive number by which to multiply", "figures: %q: factor = %v", f.Name, *f.Factor)
	}
	if !(f.Every >= 0 && f.Every <= 86400) {
		wrong("write the seconds between two lines of the command", "figures: %q: every = %v", f.Name, f.Every)
	}
	if f.Every > 0 && f.JSON != "" {
		wrong("write regex, which may match many times", "figures: %q has both every and json, which has only one value", f.Name)
	}
	if (f.Regex == "") == (f.JSON == "") {
		wrong("write one of the two", "figures: %q has both regex and json, or neither", f.Name)
		return
	}
	if f.Regex == "" {
		return
	}
	var err error
	if f.pattern, err = regexp.Compile(f.Regex); err != nil {
		wrong("use the RE2 syntax", "figures: %q: regex: %v", f.Name, err)
	} else if f.pattern.NumSubexp() < 1 {
		wrong(`put parentheses around the number, as in "took ([0-9.]+)"`, "figures: %q: regex has no group", f.Name)
	}
}

// read finds the figure in the output of the command. If the figure is a mean over time, series has
// the single values.
func (f *figure) read(text string) (value float64, series []float64, err error) {
	if f.Every == 0 {
		word, err := f.find(text)
		if err != nil {
			return 0, nil, err
		}
		value, err = f.number(word)
		return value, nil, err
	}
	sum := 0.0
	for _, found := range f.pattern.FindAllStringSubmatch(text, -1) {
		n, err := f.number(found[1])
		if err != nil {
			return 0, nil, err
		}
		series, sum = append(series, n), sum+n
	}
	if len(series) == 0 {
		_, err := f.find(text)
		return 0, nil, err
	}
	return sum / float64(len(series)), series, nil
}

// number parses a word of the output.
func (f *figure) number(word string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, problem.New(problem.Failed, "%q: %q is not a number", f.Name, beginning(word, 80)).
			Try("let the group or the path match only the number")
	}
	if f.Factor != nil {
		n *= *f.Factor
	}
	return n, nil
}

func (f *figure) find(text string) (string, error) {
	if f.pattern != nil {
		if found := f.pattern.FindStringSubmatch(text); found != nil {
			return found[1], nil
		}
		return "", problem.New(problem.Failed, "%q: the output of the command has no match for %s", f.Name, f.Regex)
	}
	if !gjson.Valid(text) {
		return "", problem.New(problem.Failed, "%q: the output of the command is not complete JSON", f.Name)
	}
	switch found := gjson.Get(text, f.JSON); found.Type {
	case gjson.Number, gjson.String:
		return found.String(), nil
	case gjson.Null:
		return "", problem.New(problem.Failed, "%q: the output of the command has nothing at %s", f.Name, f.JSON)
	default:
		return "", problem.New(problem.Failed, "%q: the value at %s is not a number: %s", f.Name, f.JSON, beginning(found.Raw, 80))
	}
}

// beginning returns at most the given number of bytes from the start of a text.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
