//! What Rust programs see of GPUs by nvml-wrapper: a line for each GPU.
use nvml_wrapper::{error::NvmlError, Nvml};

fn shown<T: std::fmt::Debug>(answer: Result<T, NvmlError>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{error:?}"),
    }
}

fn main() -> Result<(), NvmlError> {
    let nvml = Nvml::init()?;
    for index in 0..nvml.device_count()? {
        let gpu = nvml.device_by_index(index)?;
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}",
            gpu.index()?,
            gpu.name()?,
            gpu.uuid()?,
            gpu.memory_info()?.total,
            shown(gpu.utilization_rates()),
            shown(gpu.running_compute_processes().map(|processes| processes.len())),
        );
    }
    Ok(())
}
