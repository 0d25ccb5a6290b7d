//! What a lab's notebook has of a run: the figures of its first repetition.

use serde_json::Value;

use super::Lab;

/// The observations of a run's first repetition.
pub struct Recorded(pub Value);

impl Lab {
    /// What was kept of the run.
    pub fn kept(&self, run: &str) -> Recorded {
        let export = self.json(&format!("export {run} --format json"));
        Recorded(export["runs"][0]["repetitions"][0]["observations"].clone())
    }
}

impl Recorded {
    /// A metric; `None` where it is a dash.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let metric = self.0["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name);
        metric.unwrap_or_else(|| panic!("no {name}: {}", self.0["metrics"]))["value"].as_f64()
    }

    /// A column of numbers; `None` where there is a dash.
    pub fn column(&self, table: &str, name: &str) -> Vec<Option<f64>> {
        let values = self.values(table, name);
        values["number"].as_array().unwrap().iter().map(Value::as_f64).collect()
    }

    /// A column of numbers; a dash is none.
    pub fn numbers(&self, table: &str, name: &str) -> Vec<f64> {
        self.column(table, name).into_iter().map(|number| number.unwrap_or(f64::NAN)).collect()
    }

    /// A column of texts.
    pub fn texts(&self, table: &str, name: &str) -> Vec<String> {
        let values = self.values(table, name);
        values["text"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// The number in a column, of the row with this text in the first column.
    pub fn cell(&self, table: &str, row: &str, name: &str) -> f64 {
        let first = &self.table(table)["columns"][0]["values"]["text"];
        let at = first.as_array().unwrap().iter().position(|text| text == row);
        self.numbers(table, name)[at.unwrap_or_else(|| panic!("no {row} in {first}"))]
    }

    /// Growth of a counter of /proc/vmstat over the run.
    pub fn grown(&self, name: &str) -> f64 {
        let counters = self.0["counters"].as_array().unwrap();
        let found = counters.iter().find(|counter| counter["name"] == name && counter["source"] == "vmstat");
        let counter = found.unwrap_or_else(|| panic!("no {name}"));
        counter["after"].as_f64().unwrap() - counter["before"].as_f64().unwrap()
    }

    /// The unit of a column.
    pub fn unit(&self, table: &str, name: &str) -> &Value {
        &self.column_of(table, name)["unit"]
    }

    /// The remarks.
    pub fn notes(&self) -> String {
        self.0["notes"].to_string()
    }

    /// A table as it is kept.
    pub fn table(&self, name: &str) -> &Value {
        let tables = self.0["tables"].as_array().unwrap();
        let found = tables.iter().find(|known| known["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {tables:?}"))
    }

    fn values(&self, table: &str, name: &str) -> &Value {
        &self.column_of(table, name)["values"]
    }

    fn column_of(&self, table: &str, name: &str) -> &Value {
        let found = self.table(table);
        let column = found["columns"].as_array().unwrap().iter().find(|column| column["name"] == name);
        column.unwrap_or_else(|| panic!("no {name} in {found}"))
    }
}
