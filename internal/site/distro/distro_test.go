package distro

import (
	"reflect"
	"testing"

	"orrery/internal/site"
)

// TestOf: an image has the distribution that it names. If it names none, as in older site files, it
// has the distribution with its suite.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		image site.Image
		want  *Distribution
	}{
		{site.Image{Suite: "bookworm"}, Debian},
		{site.Image{Suite: "noble"}, Ubuntu},
		{site.Image{Suite: "noble-proposed"}, Ubuntu},
		{site.Image{Suite: "stable"}, Debian},
		{site.Image{Suite: "of-our-own"}, Debian},
		{site.Image{Distribution: "ubuntu", Suite: "of-our-own"}, Ubuntu},
		{site.Image{Distribution: "ubuntu", Import: "/x.tar"}, Ubuntu},
		{site.Image{Import: "/x.tar"}, Debian},
	} {
		if got := ForImage(c.image); got != c.want {
			t.Errorf("%+v is of %s instead of %s", c.image, got.Name, c.want.Name)
		}
	}
}

// TestWhole: a distribution sets all required fields and shares no suite with another.
func TestWhole(t *testing.T) {
	whole := func(of string, v reflect.Value, but ...string) {
		for i := range v.NumField() {
			optional := false
			for _, name := range but {
				optional = optional || v.Type().Field(i).Name == name
			}
			if v.Field(i).IsZero() && !optional {
				t.Errorf("%s has no %s", of, v.Type().Field(i).Name)
			}
		}
	}
	of := map[string]string{}
	for _, d := range All {
		whole(d.Name, reflect.ValueOf(*d), "SuiteAliases", "WithoutPockets")
		whole(d.Name, reflect.ValueOf(*d.Packages))
		whole(d.Name, reflect.ValueOf(*d.Services))
		for _, suite := range append(d.Suites, d.SuiteAliases...) {
			if other := of[suite]; other != "" {
				t.Errorf("suite %s is of %s and of %s", suite, other, d.Name)
			}
			of[suite] = d.Name
		}
	}
}
