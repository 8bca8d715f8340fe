package main

import (
	"encoding/json"
	"strings"
)

// Objects are kept as text: a fleet's works hold 100 KB each, of which a write changes one member. What is here looks at as much of the
// text as that takes. Texts come from JSON writers and are not checked.

// member of a JSON object: its name with the quotes, its value as text.
type member struct{ name, value string }

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// skipString returns where the string that begins at i ends.
func skipString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// skipValue returns where the value that begins at i ends.
func skipValue(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '"':
			i = skipString(s, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(s)
}

func isObject(s string) bool { return len(s) > 0 && s[0] == '{' }

// members cuts an object into its members; nil for anything else.
func members(s string) (list []member) {
	s = strings.TrimSpace(s)
	if !isObject(s) {
		return nil
	}
	for i := skipSpace(s, 1); i < len(s) && s[i] == '"'; i = skipSpace(s, i) {
		end := skipString(s, i)
		name := s[i:end]
		i = skipSpace(s, end)
		i = skipSpace(s, min(i+1, len(s))) // the colon
		end = skipValue(s, i)
		list = append(list, member{name, s[i:end]})
		if i = skipSpace(s, end); i < len(s) && s[i] == ',' {
			i = skipSpace(s, i+1)
		}
	}
	return list
}

func object2text(list []member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(m.name)
		b.WriteByte(':')
		b.WriteString(m.value)
	}
	b.WriteByte('}')
	return b.String()
}

func find(list []member, name string) int {
	for i := range list {
		if list[i].name == name {
			return i
		}
	}
	return -1
}

// mergeMembers does what RFC 7386 says to an object of which the members are given.
func mergeMembers(target []member, patch []member) []member {
	result := append([]member(nil), target...)
	for _, p := range patch {
		i := find(result, p.name)
		switch {
		case p.value == "null" && i >= 0:
			result = append(result[:i], result[i+1:]...)
		case p.value == "null":
		case i >= 0:
			result[i].value = merge(result[i].value, p.value)
		default:
			result = append(result, member{p.name, merge("", p.value)})
		}
	}
	return result
}

// merge is RFC 7386.
func merge(target, patch string) string {
	if !isObject(patch) {
		return patch
	}
	return object2text(mergeMembers(members(target), members(patch)))
}

// text is v as JSON.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
